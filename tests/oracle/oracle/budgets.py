"""docs/record.md, "Budgets": what updates are charged, and which round may open."""

import math

MOST, COSTS = 1 << 62, 8

def number(budget, key, default):
    return float(budget.get(key, default))

def charge(job, states):
    """Millionths of the budget's unit for one update, by what it states."""
    budget = job.spec["budget"]
    rounds = int(job.number("staleness_max", 16)) + 1 if job.strategy == "fedbuff" else 1
    time = min(float(states["seconds"]), float(int(job.number("round_timeout_s", 3600))) * float(rounds))
    per_joule = 1.0 if "joules" in budget else number(budget, "per_joule", 0)
    per_minute = 1.0 if "site_minutes" in budget else number(budget, "per_site_minute", 0)
    most = (number(budget, "watts", 1000) if per_joule > 0 else 0.0) * time
    joules = most if states["energy_quality"] == "unknown" else min(float(states["energy_joules"]), most)
    return min(MOST, math.ceil((per_joule * joules + per_minute * (time / 60)) * 1e6))

def budget_of(job):
    budget = job.spec["budget"]
    return math.floor(number(budget, next(u for u in ("joules", "site_minutes", "money") if u in budget), 0) * 1e6)

def fits(job, spent, costs):
    return spent < budget_of(job) and max(costs[-COSTS:], default=0) <= budget_of(job) - spent
