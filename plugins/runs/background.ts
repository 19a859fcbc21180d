/** Triggers of runs for which nobody waits. */
const TRIGGERS: ReadonlySet<string | undefined> = new Set(['webhook', 'heartbeat'])

/** Whether a run gives way to those of people: it gets a place after the others of its agent, and a part of the limits is not for it. */
export function isBackground(trigger: string | undefined): boolean {
	return TRIGGERS.has(trigger)
}
