/** Texts of the gateway itself in chats, as Markdown, and its notes for models. */
import { excerpt } from '../../../core/util/excerpt.ts'
import { pluralize } from '../../../core/util/pluralize.ts'
import type { WireError } from '../../../core/errors.ts'
import type { AnswerFile, OpenQuestion, RunRecord } from '../../runs/contract.ts'
import type { Counted } from '../../usage/contract.ts'
import type { ChatKind, IncomingFile, IncomingMessage } from '../adapter.ts'

/** A result with exactly this text is not delivered. */
export const NOTHING_TO_SAY = 'NOTHING_TO_SAY'

export const texts = {
	pairing: (at: { code: string; expires_at: string; channel_id: string; chat_id: string }): string =>
		`This chat has no agent yet. To connect it, give this code to the person who runs the gateway:\n\n` +
		`${code(at.code)}\n\n` +
		`They run ${code(`svc channels pair ${at.code}`)}, or send it with ${code('POST /v1/channels/pair')} ` +
		`as ${code('pairing_code')}, once, until ${at.expires_at.slice(11, 16)} UTC. ` +
		`Without a code: ${code('channel_id')} ${code(at.channel_id)} and ${code('external_chat_id')} ${code(at.chat_id)}.`,
	unpaired: (at: { channel_id: string; chat_id: string }): string =>
		`This chat has no agent yet. Send /start to get a code for connecting it; or the person who runs the gateway sends ` +
		`${code('POST /v1/channels/pair')} with an ${code('agent_id')}, ${code('channel_id')} ${code(at.channel_id)} ` +
		`and ${code('external_chat_id')} ${code(at.chat_id)}.`,
	paired: (agent: string): string => `This chat is now connected to the agent ${code(agent)}. Write something.`,
	start: (agent: string): string =>
		`You are talking to the agent ${code(agent)}. /new begins a new conversation, /stop stops its work, /help lists all commands.`,
	newSession: (stopped: number): string =>
		`${stopped > 0 ? 'Stopped. ' : ''}A new conversation begins: what was said before is forgotten.`,
	stopped: 'Stopped.',
	/** `names`: tools of running calls. */
	progress: (names: readonly string[], done: number): string => {
		const now = names.slice(0, TOOLS_SHOWN).map((name) => code(excerpt(oneLine(name), NAME_LIMIT)))
		const more = names.length - now.length
		if (more > 0) now.push(`${more} more`)
		const ended = done === 0 ? [] : [`${pluralize(done, 'call')} done`]
		return `Working: ${[...now, ...ended].join(', ')} …`
	},
	nothingToStop: 'There is nothing to stop.',
	whoami: (at: { chat_id: string; sender_id: string; agent: string; channel_id: string }): string =>
		`chat ${code(at.chat_id)}, you ${code(at.sender_id)}, agent ${code(at.agent)}, channel ${code(at.channel_id)}`,
	help: [
		'- /new begins a new conversation',
		'- /stop stops what the agent is doing',
		'- /model shows the model; with a name it changes it',
		'- /usage shows tokens and cost',
		'- /context shows how much of the conversation the model sees',
		'- /compact summarizes the older part of the conversation',
		'- /whoami shows ids',
		'',
		'Everything else goes to the agent.',
	].join('\n'),
	usage: (today: Counted, month: Counted): string => `Today: ${counted(today)}\nLast 30 days: ${counted(month)}`,
	noUsage: 'Usage is not counted: the plugin `usage` is switched off.',
	context: (at: { tokens: number; budget: number; turns: number }): string =>
		`The next request takes about ${at.tokens.toLocaleString('en')} of ${at.budget.toLocaleString('en')} tokens, ` +
		`with ${pluralize(at.turns, 'earlier turn')}.`,
	compacting: (turns: number): string => `Summarizing ${pluralize(turns, 'turn')}.`,
	notCompacted: (why: string): string => `Not summarized: ${literal(excerpt(why, ERROR_LIMIT))}`,
	model: (at: { provider: string; model: string; isChanged: boolean; instead_of?: string }): string =>
		(at.instead_of === undefined ? '' : `${code(at.instead_of)} is not set up. `) +
		`${at.isChanged ? 'From the next message on, the' : 'The'} model is ${code(at.model)} of ${code(at.provider)}.`,
	noModelName: 'Send /model and a name such as `gpt-4o-mini`, or `default`.',
	notYourCommand: 'In this chat only the person who connected it can use this command.',
	notYourModel:
		'Only the person who connected this chat can change the model here. The person who runs the gateway can use `svc agents update`.',
	commandFailed: (why: string): string => `Sorry, that did not work: ${literal(excerpt(why, ERROR_LIMIT))}`,
	commandBroken: 'Sorry, that did not work. The reason is in the log of the gateway.',
	/** `what`: such as `a sticker`. */
	unreadable: (what = 'this message'): string => `I cannot read ${literal(what)}. Please write it as text.`,
	tooMuch: 'Too many messages wait for an answer here. Write again once they are answered, or send /stop.',
	empty: '(The answer is empty.)',
	/** Only the operator sees the details of problems with a model or the gateway. */
	failed: ({ code: word, message }: WireError, run_id: string): string =>
		/^(model_|internal)/.test(word)
			? `Sorry, that did not work (${literal(word)}). The person who runs the gateway can see why: ${code(`GET /v1/runs/${run_id}`)}`
			: `Sorry, that did not work: ${literal(excerpt(message, ERROR_LIMIT))} (${literal(word)})`,
	/** Appended to the preview of a stopped answer. */
	brokenOff: '\n\n… (stopped)',
	question,
	/** Appended to a question in a group where the bot sees only messages addressed to it. */
	answerToMe: '\n\nIn this group I only see an answer that mentions me or is a reply to this message.',
	notYours: 'Only the person who connected this chat may answer that.',
	notApproved: (why: string): string =>
		`That does not answer the approval above: ${literal(excerpt(why, ERROR_LIMIT))}`,
	/** A question of a sub-agent. */
	questionBelow: (asked: OpenQuestion): string => `A sub-agent asks:\n\n${question(asked)}`,
	/** Sent instead of a file. `why`: the reason of the platform or the gateway. */
	fileLeft: ({ name, size, blob }: AnswerFile, agent: string, why: string): string =>
		`${code(name)} (${bytes(size)}) could not be sent here: ${literal(excerpt(why, ERROR_LIMIT))}. ` +
		`The person who runs the gateway can get it with ${code(`GET /v1/agents/${agent}/blobs/${blob}`)}.`,
	/** The text of an answer that has only files. */
	files: (files: readonly AnswerFile[]): string => files.map(({ name }) => code(name)).join(', '),
	noFiles: 'this channel sends no files',
	fileTooLarge: (max_bytes: number): string => `it is larger than ${bytes(max_bytes)}`,
	fileGone: 'it was deleted',
	cut: (run_id: string): string =>
		`\n\n… The answer is too long for a chat. The complete answer: ${code(`GET /v1/runs/${run_id}`)}`,
	/** For the model, after the text of the message. */
	attachment: (what: string): string => `[Attached but not readable here: ${oneLine(what)}]`,
	lost: ({ what, name }: Pick<IncomingFile, 'what' | 'name'>, why: string): string => {
		const named = oneLine(what) + (name === undefined ? '' : ` ${JSON.stringify(excerpt(oneLine(name), NAME_LIMIT))}`)
		return `[Attached but not loaded: ${named} (${excerpt(oneLine(why), ERROR_LIMIT)})]`
	},
	answerInText: 'I have asked a question: please answer it in text.',
	/** For the model. */
	place: (label: string, { chat, sender }: Pick<IncomingMessage, 'chat' | 'sender'>): string => {
		const where = chat.kind === 'group' ? 'a group chat' : 'a direct chat'
		const name = excerpt(oneLine(sender.name ?? ''), NAME_LIMIT)
		return `${where} on ${label}, with ${name === '' ? 'a person without a name' : JSON.stringify(name)} (id ${sender.id})`
	},
	/** For the model. */
	deliveredTo: (label: string, kind: ChatKind): string =>
		`nobody waits; your answer is sent to ${kind === 'group' ? 'a group chat' : 'a direct chat'} on ${label}, unless it is exactly ${NOTHING_TO_SAY}`,
	/** For the model, about a result that is added to a chat's conversation. */
	aboutResult: ({ trigger, run_id, prompt }: Pick<RunRecord, 'trigger' | 'run_id' | 'prompt'>): string => {
		const cause = trigger === 'heartbeat' ? 'your schedule' : trigger === 'webhook' ? 'your webhook' : 'a sub-agent'
		// The prompt of a webhook is omitted, since it contains data from outside.
		const task =
			trigger === 'heartbeat' ? `, with the prompt ${JSON.stringify(excerpt(oneLine(prompt), PROMPT_LIMIT))}` : ''
		return `The result of a run that ${cause} started (${run_id}${task}) was sent to this chat.`
	},
	/** For the model, before the text of a reply. The quote is untrusted: as a JSON string it cannot break out of its quotes. */
	quoted: ({ text, sender, own }: { text: string; sender: string; own: boolean }): string => {
		const name = excerpt(oneLine(sender), NAME_LIMIT)
		const whose = own ? 'your message' : name === '' ? 'a message' : `a message from ${JSON.stringify(name)}`
		return `[A reply to ${whose}, quoted here: ${JSON.stringify(oneLine(text))}]`
	},
	/** Before the text of a message in a group. */
	sender: ({ id, name }: { id: string; name?: string }): string =>
		`Message from ${JSON.stringify(excerpt(oneLine(name ?? ''), NAME_LIMIT) || id)} (id ${id}):`,
}

/** Limit of an error that is shown, in characters. */
const ERROR_LIMIT = 400
const NAME_LIMIT = 64
/** Tools named in a progress line. */
const TOOLS_SHOWN = 3
/** Limit of a heartbeat's prompt, in characters. */
const PROMPT_LIMIT = 500

/** With a numbered list of options, except for approvals, whose text explains them. */
function question({ kind, question: text, options = [] }: Omit<OpenQuestion, 'question_id' | 'run_id'>): string {
	const asked = withNewlines(text)
	if (options.length === 0 || kind === 'approval') return asked
	const list = options.map((option, n) => `${n + 1}. ${option.replaceAll(/\s*[\r\n]\s*/g, ' ')}`).join('\n')
	return `${asked}\n\n${list}\n\nAnswer with a number, or in your own words.`
}

function counted({ calls, input_tokens, output_tokens, cost }: Counted): string {
	const tokens = `${input_tokens.toLocaleString('en')} tokens in, ${output_tokens.toLocaleString('en')} out`
	return `${pluralize(calls, 'model call')}, ${tokens}${cost === null ? '' : `, cost ${cost.toFixed(2)}`}`
}

function bytes(count: number): string {
	if (count < 1024) return `${count} bytes`
	return count < 1024 * 1024 ? `${Math.round(count / 1024)} KiB` : `${(count / 1024 / 1024).toFixed(1)} MiB`
}

function code(text: string): string {
	return `\`${text.replaceAll('`', "'")}\``
}

/** Escapes Markdown. */
function literal(text: string): string {
	return oneLine(text).replaceAll(/[\\`*_~[\]<>#|]/g, '\\$&')
}

/** Normalizes line ends to `\n`, and makes the text well-formed, as splitting and lexing require. */
export function withNewlines(text: string): string {
	return text.replaceAll(/\r\n?/g, '\n').toWellFormed()
}

function oneLine(text: string): string {
	return text
		.replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\s]+/gu, ' ')
		.toWellFormed()
		.trim()
}
