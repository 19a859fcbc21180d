/**
 * Tracks whether the servers have free space. They report a lack of it only by refusing a write, so a refusal applies until a message
 * of some size is stored: renewals of the lease are so small that they still succeed long after all other writes are refused.
 */
import { textOfError } from './client.ts'
import type { Answer, ApiError, Client } from './client.ts'

export type Space = ReturnType<typeof openSpace>

/** The stream, the account or the disk of the servers is full. */
const FULL = new Set([10002, 10023, 10028, 10047, 10077, 10110])
/** Several times the size of a run's step. */
const PROBE_BYTES = 32 * 1024

/** `subject`: for messages that readers ignore and that expire. */
export function openSpace(client: Client, subject: string) {
	let trouble: string | null = null
	let isChecking = false
	return {
		/** Why a write was refused for lack of space; undefined if the error has another cause. Sets `trouble`. */
		refusal(error: ApiError): string | undefined {
			if (error.err_code === undefined || !FULL.has(error.err_code)) return undefined
			return (trouble = `the cluster has no space left: ${textOfError(error)}`)
		},
		/** Null while there is space; otherwise why writes are refused. */
		trouble: () => trouble,
		/** While there is trouble, tries to store a message, whose success ends it. Settles with its position, or undefined if none was stored. */
		async check(): Promise<number | undefined> {
			if (trouble === null || isChecking) return undefined
			isChecking = true
			try {
				const headers = { 'Nats-TTL': '1s', 'Svc-Probe': 'x'.repeat(PROBE_BYTES) }
				const { seq, error } = (await client.ask(subject, '', headers)).json<Answer<{ seq: number }>>()
				if (error) return undefined
				trouble = null
				return seq
			} finally {
				isChecking = false
			}
		},
	}
}
