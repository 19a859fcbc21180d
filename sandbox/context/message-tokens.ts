/** The estimated tokens of a message, an attachment or a tool in a request. */
import type { Attachment, ChatMessage, ToolSpec } from '../../core/protocol.ts'
import { TEXT_LIMIT } from '../attachments/shown.ts'
import type { Turn } from '../models/provider.ts'
import { isTextType } from '../text-type.ts'
import { tokensIn } from './estimate.ts'

/** Tokens of a message besides its text. */
export const MESSAGE_TOKENS = 6

const counted = new WeakMap<object, number>()

/** Counted once for each message object. */
export function tokensOf(turn: Turn | ChatMessage): number {
	let tokens = counted.get(turn)
	if (tokens === undefined) {
		tokens = tokensIn(turn.content) + MESSAGE_TOKENS
		if (turn.role !== 'assistant') for (const one of turn.attachments ?? []) tokens += tokensOfAttachment(one)
		if (turn.role === 'assistant')
			for (const call of turn.tool_calls ?? [])
				tokens += tokensIn(call.name) + tokensIn(call.arguments) + MESSAGE_TOKENS * 2
		if (turn.role === 'assistant' && turn.provider_state) tokens += tokensIn(turn.provider_state.data)
		counted.set(turn, tokens)
	}
	return tokens
}

export function tokensOfTool(tool: ToolSpec): number {
	let tokens = counted.get(tool)
	if (tokens === undefined) {
		tokens = tokensIn(JSON.stringify([tool.name, tool.description, tool.parameters])) + MESSAGE_TOKENS * 2
		counted.set(tool, tokens)
	}
	return tokens
}

/** An image of the size to which providers scale large ones down. */
const IMAGE = 1_600
/** A page of a document has about 50 KB and 2,000 tokens. */
const BYTES_PER_TOKEN = 25
const DOCUMENT = 100_000
const LINE = 40
/** Tokens of a second of sound; bytes per token if the length is unknown. */
const SECOND = 32
const SOUND_BYTES_PER_TOKEN = 80

/** Estimated tokens of an attachment in a request: rather too many than too few. */
function tokensOfAttachment({ type, media_type, size, seconds, transcript }: Attachment): number {
	if (type === 'image') return IMAGE
	if (type === 'audio')
		return typeof transcript === 'string'
			? tokensIn(transcript) + LINE
			: Math.ceil(seconds === undefined ? size / SOUND_BYTES_PER_TOKEN : seconds * SECOND) + LINE
	if (isTextType(media_type)) return Math.ceil(Math.min(size, TEXT_LIMIT) / 3) + LINE
	if (media_type !== 'application/pdf') return LINE
	return Math.min(DOCUMENT, Math.max(IMAGE, Math.ceil(size / BYTES_PER_TOKEN)))
}
