/** The text of the question for an approval, and the parser for its answers. */
import { hash } from 'node:crypto'
import { invalidField } from '../shared/invalid-field.ts'
import { canonicalJson } from '../../core/util/canonical-json.ts'
import { isObject } from '../../core/util/is-object.ts'
import { jsonEscape } from '../../core/util/json-escape.ts'
import { jsonIn } from '../../core/util/json-in.ts'
import type { Answer } from './contract.ts'

export const approvalOptions = ['approve', 'approve_always', 'edit', 'refuse']

/** Characters of the arguments as JSON. Longer ones cannot be shown completely in a chat, so nobody could approve them. */
export const ARGUMENTS_LIMIT = 32 * 1024
const REASON_LIMIT = 2_000

const HOW =
	'Answer `approve`, `approve_always` (also for later calls with exactly these arguments), `edit` followed by other arguments as one JSON object, or `refuse` followed by a reason.'

/** `tool`: its displayed name. The arguments cannot end the code block around them, nor hide or reorder their own text. */
export function approvalText(tool: string, args: Record<string, unknown>): string {
	const json = visible(JSON.stringify(args, null, 2))
	const longest = Math.max(2, ...[...json.matchAll(/`+/g)].map(([run]) => run.length))
	const fence = '`'.repeat(longest + 1)
	const name = visible(tool).replaceAll('`', "'")
	return `The agent wants to call the tool \`${name}\`, which needs approval. The arguments are:\n\n${fence}json\n${json}\n${fence}\n\n${HOW}`
}

/** An approval is bound to this digest of the tool's name and the arguments. */
export function approvalDigest(name: string, args: Record<string, unknown>): string {
	return hash('sha256', canonicalJson([name, args]))
}

export interface ApprovalAnswer extends Answer {
	answer: 'approve' | 'approve_always' | 'edit' | 'refuse'
}

/**
 * Parses an answer, given in fields or as one text: `approve`, `approve_always`, `edit {"path": "a"}`, `refuse not today`. The
 * number of an option may replace its word. Throws `invalid_request` for any other text.
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
	if (rest !== '') throw invalidField('answer', `nothing may follow "${kind}"; ${HOW}`)
	return { answer: kind }
}

function readObject(text: string): Record<string, unknown> {
	const value = jsonIn(/^(`{3,})(?:json)?\s([\s\S]*)\1$/.exec(text)?.[2] ?? text)
	if (isObject(value)) return value
	throw invalidField('arguments', 'write "edit" and after it all arguments of the call as one JSON object')
}

/** Characters without a glyph. U+2800, the blank Braille pattern, is one too, although Unicode classifies it as a symbol. */
const UNSEEN = /[\p{Default_Ignorable_Code_Point}\p{Zl}\p{Zp}\u2800]|(?!\n)\p{C}|(?! )\p{Zs}/gu

/** Escapes invisible characters, such as those that change the direction of the text. */
function visible(json: string): string {
	return json.replaceAll(UNSEEN, jsonEscape)
}
