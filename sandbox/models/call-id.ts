import { hash } from 'node:crypto'
import type { Traits } from './traits.ts'

/** An id that every server accepts: Mistral requires 9 letters and digits, OpenAI at most 40 characters. */
const SHORT = /^[a-zA-Z0-9]{9}$/

/** The id of a call in the form that this server accepts. It may be from another provider, or from a client. */
export function callId(id: string, { short_ids }: Traits): string {
	return short_ids && !SHORT.test(id) ? hash('sha256', id, 'hex').slice(0, 9) : id
}
