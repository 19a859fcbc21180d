/** An approval as people read and answer it: what a tool call is asked with, and what an answer means. */
import { hash } from 'node:crypto'
import { invalidField } from '../shared/invalid-field.ts'
import { canonicalJson } from '../../core/util/canonical-json.ts'
import { isObject } from '../../core/util/is-object.ts'
import { jsonIn } from '../../core/util/json-in.ts'
import type { Answer } from './contract.ts'

export const approvalOptions = ['approve', 'approve_always', 'edit', 'refuse']

/** Characters of the arguments as JSON, and of a reason. Longer arguments cannot be shown whole in a chat, so nobody could approve them. */
export const ARGUMENTS_LIMIT = 32 * 1024
const REASON_LIMIT = 2_000

const HOW =
	'Answer `approve`, `approve_always` (also for later calls with exactly these arguments), `edit` followed by other arguments as one JSON object, or `refuse` followed by a reason.'

/** `tool`: its shown name. Nothing in the arguments can end the block that shows them, or hide or reorder what it shows. */
export function approvalText(tool: string, args: Record<string, unknown>): string {
	const json = visible(JSON.stringify(args, null, 2))
	const longest = Math.max(2, ...[...json.matchAll(/`+/g)].map(([run]) => run.length))
	const fence = '`'.repeat(longest + 1)
	const name = visible(tool).replaceAll('`', "'")
	return `The agent wants to call the tool \`${name}\`, which needs approval. The arguments are:\n\n${fence}json\n${json}\n${fence}\n\n${HOW}`
}

/** What an approval is bound to: the tool and the arguments of the call. */
export function approvalDigest(name: string, args: Record<string, unknown>): string {
	return hash('sha256', canonicalJson([name, args]))
}

export interface ApprovalAnswer {
	answer: 'approve' | 'approve_always' | 'edit' | 'refuse'
	arguments?: Record<string, unknown>
	reason?: string
}

/**
 * An answer with its fields, or as one text: `approve`, `approve_always`, `edit {"path": "a"}`, `refuse not today`; or the number
 * of the option in place of the word. Throws `invalid_request`: nothing else approves or refuses a call.
 */
export function readApproval({ answer, arguments: args, reason }: Answer): ApprovalAnswer {
	const text = answer.trim()
	const found = /^(?:(approve[_ ]always)|(approve)|(edit)|(refuse)|#?([1-4])[.)]?)(?=$|[\s:,.;{`])[:,.;]?/i.exec(text)
	if (!found) throw invalidField('answer', `this is an approval; ${HOW}`)
	const [all, always, approve, edit, refuse, number] = found
	const words = [approve, always, edit, refuse]
	const at = number === undefined ? words.findIndex((word) => word !== undefined) : Number(number) - 1
	const kind = approvalOptions[at] as ApprovalAnswer['answer']
	const rest = text.slice(all.length).trim()
	if (kind !== 'edit' && args !== undefined)
		throw invalidField('arguments', 'arguments belong to the answer "edit" alone')
	if (kind !== 'refuse' && reason !== undefined)
		throw invalidField('reason', 'a reason belongs to the answer "refuse" alone')
	if (kind === 'refuse') {
		const why = reason ?? rest
		if (why.length > REASON_LIMIT) throw invalidField('reason', `a reason has at most ${REASON_LIMIT} characters`)
		return { answer: kind, ...(why !== '' && { reason: why }) }
	}
	if (kind === 'edit') return { answer: kind, arguments: args ?? readObject(rest) }
	if (rest !== '') throw invalidField('answer', `"${kind}" takes nothing after it; ${HOW}`)
	return { answer: kind }
}

function readObject(text: string): Record<string, unknown> {
	const value = jsonIn(/^(`{3,})(?:json)?\s([\s\S]*)\1$/.exec(text)?.[2] ?? text)
	if (isObject(value)) return value
	throw invalidField('arguments', 'write "edit" and after it all arguments of the call as one JSON object')
}

/** The blank of Braille, too, which Unicode counts as a symbol. */
const UNSEEN = /[\p{Default_Ignorable_Code_Point}\p{Zl}\p{Zp}\u2800]|(?!\n)\p{C}|(?! )\p{Zs}/gu

/** JSON whose characters are all seen: others, such as those that turn the direction of text, are written as escapes. */
function visible(json: string): string {
	return json.replaceAll(UNSEEN, (character) =>
		character
			.split('')
			.map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
			.join(''),
	)
}
