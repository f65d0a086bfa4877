"""Which seeds are run when."""

from __future__ import annotations

ALWAYS = range(100)
"""With all other tests."""

_COHORT = "Quota that one ClusterQueue gave back was given to another of its cohort before the API server had it back."
_VICTIM = "The place of a victim whose binding failed was free while its preemptor was held back; nobody woke it again."
_PROVISIONED = "The sandbox left the selected node on a claim although that node was gone: the claim waited for ever."
_UNSEEN = "A victim whose binding the watch had not shown lost its place while it was still terminating."

KEPT: dict[int, str] = {
    184: "A Job was made again while its watch lagged: the workload of the old one was made as fast as it was deleted.",
    313: "A status that could not be written was to be tried again later, and nothing woke the controller for it.",
    459: _COHORT,
    469: _VICTIM,
    573: _VICTIM,
    769: _COHORT,
    824: _PROVISIONED,
    835: _PROVISIONED,
    975: _PROVISIONED,
    994: "The end of a backoff, written by a clock that was an hour ahead, kept a workload waiting for an hour.",
    1083: _VICTIM,
    1392: _PROVISIONED,
    1557: "Devices of a claim that was deleted while its allocation was on its way became free, and nobody was told.",
    1633: _UNSEEN,
    1798: _VICTIM,
    1848: _UNSEEN,
    1854: "A new leader whose watch lagged gave away a place that the last one had given away in its last moment.",
    1866: "The claim of a preemptor became free to go anywhere; only the search for victims had failed for it before.",
    1913: _PROVISIONED,
    1917: _COHORT,
    1940: _COHORT,
    1965: _COHORT,
    2281: "A condition that it was not allowed to write is not written again by itself (the simulation asked for it).",
    3034: "A status of a workload was rejected with 403, and what it held in the API server was given to another one.",
    3197: "A pod that gave up its place took back the volume that was assumed for another pod with the same claim.",
    3226: "With the clock set back, a workload had run for less than no time: the API server rejected its release.",
}
"""Seeds above those that have found something once, and what that was; they are run with all other tests too."""
