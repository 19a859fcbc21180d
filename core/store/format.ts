/** The version of what is stored: the shapes of records, of events and of journal steps, and how an engine lays them out. */
import { Fault } from '../errors.ts'

/**
 * Raised by each change that needs a migration (core/upgrade/migration.ts). 1: version 0.1.0. 2: each agent has its liveness
 * record, skills are stored as bytes, memories are found by their text, records of MCP servers state whether they may have
 * secrets, and records of heartbeats and webhooks where their results are delivered.
 */
export const format: number = 2
/** The first version that reads this format. */
export const formatSince = '0.2.0'
/**
 * The oldest format that this version can write: that of the previous minor version. Gateways of both versions work on one
 * cluster in that format until an operator raises it (`mayUpgrade` of core/store/ports.ts). Until then, features store
 * records that the older version can read.
 */
export const oldestWritten: number = 2

/** The description of the format that an engine stores with its data. */
export interface FormatMark {
	format: number
	/** The first version that reads it; absent in format 1. */
	since?: string
	/** While an upgrade is unfinished: the format that it began with. */
	from?: number
	/** While everything is copied into it (`svc migrate`). */
	copying?: true
}

/** Why this program must not read the data in `place`; undefined if it may. */
export function formatProblem(mark: FormatMark, place: string): string | undefined {
	if (mark.copying) return `a copy into ${place} is incomplete: remove it, and run "svc migrate" again`
	if (mark.format <= format) return undefined
	const program = mark.since === undefined ? 'the version that wrote it' : `version ${mark.since} or a newer one`
	return `the data in ${place} has format ${mark.format}, and this version reads formats up to ${format}: start ${program}`
}

/** Throws `unavailable` if this program must not read the data. */
export function mustBeReadable(mark: FormatMark, place: string): void {
	const problem = formatProblem(mark, place)
	if (problem !== undefined) throw new Fault('unavailable', problem)
}
