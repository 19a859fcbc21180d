/** Triggers of runs for which nobody waits. */
const TRIGGERS: ReadonlySet<string | undefined> = new Set(['webhook', 'heartbeat'])

/** Whether a run yields to those of people: it gets a place after the others of its agent, and lower limits apply to it. */
export function isBackground(trigger: string | undefined): boolean {
	return TRIGGERS.has(trigger)
}
