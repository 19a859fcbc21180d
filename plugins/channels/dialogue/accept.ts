/** Accepts a message that starts a run: immediately, or later if files of it or of an earlier message in the chat are loading. */
import { isFault } from '../../../core/errors.ts'
import { newId, now } from '../../../core/util/ids.ts'
import type { View } from '../../../core/redactor/redactor.ts'
import type { IncomingMessage, QuotedMessage } from '../adapter.ts'
import type { BoundChat, LiveChannel } from '../parts.ts'
import type { DialogueDeps } from './deps.ts'
import { FILES } from './files.ts'
import type { PendingMessages } from './pending.ts'
import { PENDING_LIMIT } from './place.ts'
import { startRun } from './start-run.ts'
import type { RunStart } from './start-run.ts'
import { texts } from './texts.ts'

interface Accepted extends Omit<RunStart, 'attachments' | 'also'> {
	message: IncomingMessage
}

/** Limit of the quote of a replied-to message, in characters. */
const QUOTE_LIMIT = 500
/** For a message of the bot, which is already in the conversation: enough to recognize it. */
const OWN_QUOTE_LIMIT = 200

export interface AcceptDeps extends DialogueDeps {
	pending: PendingMessages
}

/** The message was accepted by another call. */
export class KnownMessage extends Error {}

/** Durable when it settles. Returns false if too many messages are pending. Throws `KnownMessage`, and `not_found` if the agent was deleted. */
export async function accept(
	deps: AcceptDeps,
	channel: LiveChannel,
	bound: BoundChat,
	message: IncomingMessage,
	conversation: string,
): Promise<boolean> {
	const { runs, pending, marks } = deps
	if (runs.count(channel.id) + pending.count(channel.id) >= PENDING_LIMIT) return false
	const { id, kind, thread_id } = message.chat
	const accepted: Accepted = {
		message,
		agent: bound.agent,
		conversation,
		channel_id: channel.id,
		chat: { id, kind, ...(thread_id !== undefined && { thread_id }) },
		message_id: message.id,
		prompt: promptOf(message, deps.ctx.redactor.of([{ uid: bound.agent.uid }])),
		place: texts.place(channel.label, message),
		trigger: channel.type,
	}
	const place = { agent_uid: bound.agent.uid, channel_id: channel.id, chat: accepted.chat, conversation }
	const isBehind = pending.inChat(channel.id, id) > 0
	const merges = channel.config.during_run === 'merged' && (isBehind || runs.isBusy(place))
	const isLater = merges || isBehind || message.attachments !== undefined
	const isAccepted = isLater ? await startLater(deps, bound, accepted, merges) : await startNow(deps, accepted)
	if (isAccepted) await marks.accepted(channel.id, message)
	return isAccepted
}

/** Commits the run, the message's id and the pending answer together. */
async function startNow(deps: AcceptDeps, { message, ...start }: Accepted): Promise<boolean> {
	const { marks } = deps
	const { agent, channel_id } = start
	let isRetry = false
	try {
		await startRun(deps, {
			...start,
			attachments: [],
			async also() {
				if (isRetry && (await marks.isKnown(channel_id, message))) throw new KnownMessage('accepted by another call')
				isRetry = true
				return marks.ops(channel_id, message, agent)
			},
		})
		return true
	} catch (error) {
		if (isFault(error, 'queue_full')) return false
		throw error
	}
}

/** Commits the pending message and its id together. */
async function startLater(
	{ marks, pending }: AcceptDeps,
	{ binding_id }: BoundChat,
	{ message, agent, ...start }: Accepted,
	merges: boolean,
): Promise<boolean> {
	const { channel_id, chat } = start
	if (!pending.hasRoom(channel_id, chat.id)) return false
	const files = message.attachments ?? []
	const record = {
		...start,
		id: newId(),
		agent: agent.name,
		agent_uid: agent.uid,
		binding_id,
		within: [...(message.chat.within ?? [])],
		files: files.slice(0, FILES),
		more_files: Math.max(0, files.length - FILES),
		...(merges && { merges }),
		at: now(),
	}
	try {
		await pending.add(record, await marks.ops(channel_id, message, agent))
		return true
	} catch (error) {
		if (isFault(error, 'conflict') && (await marks.isKnown(channel_id, message)))
			throw new KnownMessage('accepted by another call')
		throw error
	}
}

function promptOf({ text, chat, sender, attachment, attachments, quoted }: IncomingMessage, redactor: View): string {
	const lines = text.trim() === '' ? [] : [text.toWellFormed()]
	const quote = quoted && quotedText(quoted, redactor)
	if (quote) lines.unshift(quote)
	if (chat.kind === 'group') lines.unshift(texts.sender(sender))
	if (attachment && !attachments) lines.push(texts.attachment(attachment))
	return lines.join('\n\n')
}

/** One line, which the quoted text cannot break out of. Undefined without text. Redacts before cutting, since a cut could leave part of a secret. */
function quotedText({ text, sender, own = false }: QuotedMessage, redactor: View): string | undefined {
	const whole = text.trim()
	if (whole === '') return undefined
	const { text: shown, dropped } = redactor.cut(whole, own ? OWN_QUOTE_LIMIT : QUOTE_LIMIT, 'record')
	const begin = dropped > 0 ? `${shown.replace(/[\ud800-\udbff]$/, '')}…` : shown
	return texts.quoted({ text: begin, sender: sender ?? '', own })
}
