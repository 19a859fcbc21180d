/**
 * Which steps of a journal this version of the gateway can continue from. Another version may have written it: an older one before
 * an upgrade, or a newer one that worked on the same cluster.
 */
import type { JournalStep } from './journal-step.ts'

/**
 * By kind, the versions that this program reads. A step is written with the last of them, as its field `v`; without the field it is
 * version 1. A step whose meaning changes gets the next version, and keeps the older one as long as it can be read.
 */
const readable: Readonly<Record<JournalStep['kind'], readonly number[]>> = {
	model: [1],
	tool: [1],
	remark: [1],
	begun: [1],
	restart: [1],
	shrunk: [1],
	about: [1],
	approved: [1],
	waits: [1],
}

/** The first step that cannot be read, for people; null if the run can continue. */
export function unreadableStep(steps: readonly unknown[]): string | null {
	for (const step of steps) {
		const { kind, v = 1 } = step as { kind: string; v?: number }
		const versions = Object.hasOwn(readable, kind) ? readable[kind as JournalStep['kind']] : []
		if (!versions.includes(v)) return `"${kind}", version ${v}`
	}
	return null
}
