import { hash } from 'node:crypto'
import type { Traits } from './traits.ts'

/** What every server takes: Mistral wants 9 letters and digits, and OpenAI at most 40 characters. */
const SHORT = /^[a-zA-Z0-9]{9}$/

/** A call's id as this server gets it. Another provider, or a client, may have given the id. */
export function callId(id: string, { short_ids }: Traits): string {
	return short_ids && !SHORT.test(id) ? hash('sha256', id, 'hex').slice(0, 9) : id
}
