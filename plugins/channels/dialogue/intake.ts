/** Handles an incoming message. */
import { setTimeout as sleep } from 'node:timers/promises'
import { isFault } from '../../../core/errors.ts'
import type { AgentRef, Context, QuestionText } from '../../../core/plugin.ts'
import { causedBy } from '../../../core/util/context.ts'
import type { IncomingMessage } from '../adapter.ts'
import type { BoundChat, LiveChannel } from '../parts.ts'
import type { Registry } from '../registry.ts'
import type { OpenQuestion } from '../../runs/contract.ts'
import { accept, KnownMessage } from './accept.ts'
import { compactText, contextText, modelText, usageText } from './command-answers.ts'
import { commandIn } from './commands.ts'
import type { Command } from './commands.ts'
import type { Followed, FollowedRuns } from './followed.ts'
import type { Marks } from './marks.ts'
import type { Notices } from './notices.ts'
import type { PendingMessages } from './pending.ts'
import type { Reply } from './records.ts'
import type { ChatSessions } from './sessions.ts'
import { texts } from './texts.ts'

export interface IntakeDeps {
	ctx: Pick<Context, 'use' | 'find' | 'emit' | 'log' | 'signal' | 'redactor'>
	registry: Registry
	marks: Marks
	runs: FollowedRuns
	notices: Notices
	sessions: ChatSessions
	pending: PendingMessages
	/** Sends the open question of a run again if its chat did not receive it. */
	askAgain(run: Followed): void
}

const SENDING_MS = 2_000
/** After every time. */
const LAST = '~'
/** How often the agent of a chat is looked up again, if it was deleted in the meantime. */
const ATTEMPTS = 3

/** Settles once the message is durable. Throws if it could not be accepted. */
export async function receive(deps: IntakeDeps, channel: LiveChannel, message: IncomingMessage): Promise<void> {
	const { registry, marks } = deps
	const { chat, sender } = message
	const { allowed_senders, answer } = channel.config
	const isAllowed = !allowed_senders || allowed_senders.includes(sender.id)
	const isBlank = message.text.trim() === '' && !message.attachment && !message.attachments
	for (let attempt = 1; ; attempt++) {
		const bound = isAllowed ? await registry.bound(channel.id, [chat.id, ...(chat.within ?? [])]) : undefined
		const isMeant = message.addressed || (bound !== undefined && answer === 'all')
		if (!isAllowed || !isMeant || isBlank) return marks.pass(channel.id, message)
		if (await marks.isKnown(channel.id, message)) return marks.pass(channel.id, message)
		try {
			return await causedBy({ actor: { kind: 'channel', id: channel.id, label: sender.id } }, () =>
				bound ? forAgent(deps, channel, bound, message) : forNobody(deps, channel, message),
			)
		} catch (error) {
			if (error instanceof KnownMessage) return
			if (!isFault(error, 'not_found') || attempt === ATTEMPTS) throw error
		}
	}
}

/** The chat has no agent: sends a hint how to get one, at most a few times a minute. */
async function forNobody({ registry, marks, notices }: IntakeDeps, channel: LiveChannel, message: IncomingMessage) {
	const { chat } = message
	const mayHint = notices.mayHint(channel.id, chat.id)
	// No record for a repeated request: if the platform delivers it again, it is dropped again.
	if (!mayHint) return marks.pass(channel.id, message)
	const about = { channel_id: channel.id, chat_id: chat.id }
	const isStart = commandIn(message.text)?.name === 'start'
	const text = isStart
		? texts.pairing({ ...about, ...(await registry.pairingCode(channel.id, chat.id, message.sender.id)) })
		: texts.unpaired(about)
	await marks.note(channel.id, message)
	notices.hint(channel.id, chat, text, message.id)
}

async function forAgent(
	deps: IntakeDeps,
	channel: LiveChannel,
	bound: BoundChat,
	message: IncomingMessage,
): Promise<void> {
	const { chat, text } = message
	const command = message.addressed ? commandIn(text) : undefined
	if (command) return handleCommand(deps, channel, bound, message, command)
	const isText = text.trim() !== ''
	if (!isText && !message.attachments) return refuse(deps, channel, message, texts.onlyText)

	await deps.marks.introduce(channel.id, message, bound.agent)
	const conversation = await deps.sessions.current(channel.id, bound, chat)
	const asking = askingIn(deps.runs.inChat(bound.agent.uid, channel.id, chat), conversation)
	if (asking && !isText) return refuse(deps, channel, message, texts.answerInText)
	if (asking && !mayAnswer(bound, message)) {
		// Whatever else that person writes is a message like any other, and waits for its turn.
		if (asking.question && isAnswer(asking.question, text)) return refuse(deps, channel, message, texts.notYours)
	} else if (asking && (await wasAsked(asking)) && (await answerQuestion(deps, channel, bound.agent, message, asking)))
		return
	if (!(await accept(deps, channel, bound, message, conversation))) await refuse(deps, channel, message, texts.tooMuch)
	// It waits for the answer to a question that the platform may have refused, such as while the bot was blocked.
	if (asking) deps.askAgain(asking)
}

/** Of the runs that wait for an answer from this conversation, the one whose question the chat saw last. */
function askingIn(runs: readonly Followed[], conversation: string): Followed | undefined {
	const seenAt = ({ sendingQuestion, question, said, said_at }: Followed): string =>
		sendingQuestion ? LAST : said === question?.question_id ? said_at : ''
	return runs
		.filter(({ question, reply }) => question && reply.conversation === conversation)
		.reduce<Followed | undefined>((last, one) => (last && seenAt(last) >= seenAt(one) ? last : one), undefined)
}

/**
 * Has the chat seen the question? A quick reply may come before the platform has confirmed the question: wait a moment for
 * that.
 */
async function wasAsked(run: Followed): Promise<boolean> {
	const asked = run.question?.question_id
	if (run.said !== asked && run.sendingQuestion)
		await Promise.race([run.sendingQuestion.promise, sleep(SENDING_MS, undefined, { ref: false })])
	return asked !== undefined && run.said === asked
}

/** False if no run waits for the answer any more. */
async function answerQuestion(
	deps: IntakeDeps,
	channel: LiveChannel,
	agent: AgentRef,
	message: IncomingMessage,
	run: Followed,
): Promise<boolean> {
	const { ctx, marks } = deps
	const { question } = run
	if (!question) return false
	try {
		const also = await marks.ops(channel.id, message, agent)
		await ctx.use('runs').answer(agent, question.question_id, answerOf(question, message.text), also)
	} catch (error) {
		if (isFault(error, 'already_answered', 'conflict', 'not_found')) return false
		if (question.kind === 'approval' && isFault(error, 'invalid_request', 'invalid_arguments', 'unavailable')) {
			await refuse(deps, channel, message, texts.notApproved(error.message))
			return true
		}
		throw error
	}
	run.question = null
	await marks.took(channel.id, message)
	reportReceived(ctx, run.reply, message.id)
	return true
}

function mayAnswer({ answered_by }: BoundChat, { sender }: IncomingMessage): boolean {
	return answered_by === undefined || answered_by === sender.id
}

/** Whether a text is probably meant as an answer. */
function isAnswer(question: OpenQuestion, text: string): boolean {
	if (question.kind === 'approval') return /^(approve|edit|refuse|#?\d)/i.test(text.trim())
	const { options = [] } = question
	return options.includes(answerOf(question, text))
}

/** An option by its number or its text; anything else unchanged. */
function answerOf({ options = [] }: QuestionText, text: string): string {
	const words = text.trim()
	const byNumber = /^#?(\d{1,3})[.)]?$/.exec(words)?.[1]
	const sameWords = options.find((option) => option.trim().toLowerCase() === words.toLowerCase())
	return sameWords ?? (byNumber === undefined ? undefined : options[Number(byNumber) - 1]) ?? words
}

async function handleCommand(
	deps: IntakeDeps,
	channel: LiveChannel,
	bound: BoundChat,
	message: IncomingMessage,
	command: Command,
): Promise<void> {
	const { marks, notices, sessions, pending } = deps
	const { chat, sender } = message
	const isEnd = command.name === 'new' || command.name === 'stop'
	const dropped = isEnd ? await pending.drop(bound.agent.uid, channel.id, chat) : 0
	const say = (text: string): void => notices.say(channel.id, chat, text, message.id)
	const conversation = (): Promise<string> => sessions.current(channel.id, bound, chat)
	const ended = isEnd ? await conversation() : ''
	if (command.name === 'new') {
		await marks.introduce(channel.id, message, bound.agent)
		await sessions.begin(channel.id, bound, chat, await marks.ops(channel.id, message, bound.agent))
		await marks.took(channel.id, message)
	} else await marks.note(channel.id, message)
	const { agent } = bound
	// Others see no more of the agent than it tells them.
	if (['usage', 'context', 'compact'].includes(command.name) && !mayAnswer(bound, message))
		return say(texts.notYourCommand)
	switch (command.name) {
		case 'start':
			return say(texts.start(agent.name))
		case 'whoami':
			return say(texts.whoami({ chat_id: chat.id, sender_id: sender.id, agent: agent.name, channel_id: channel.id }))
		case 'new':
		case 'stop': {
			// A run that does not stop at once must not keep the messages of other chats waiting.
			void stop(deps, agent, ended, deps.runs.inChat(agent.uid, channel.id, chat)).then((stopped) => {
				const count = dropped + stopped
				if (command.name === 'new') return say(texts.newSession(count))
				say(count > 0 ? texts.stopped : texts.nothingToStop)
			})
			return
		}
		case 'help':
			return say(texts.help)
		case 'model': {
			const mayChange = bound.answered_by === sender.id
			return answer(() => modelText(deps.ctx, agent, command.argument, mayChange))
		}
		case 'usage':
			return answer(() => usageText(deps.ctx, agent))
		case 'context':
			return answer(async () => contextText(deps.ctx, agent, await conversation()))
		case 'compact':
			return answer(async () => compactText(deps.ctx, agent, await conversation()))
	}

	/** Not awaited, so that messages of other chats do not wait for it. */
	function answer(ask: () => Promise<string>): void {
		ask().then(say, (error: unknown) => {
			deps.ctx.log.warn({ err: error, command: command.name }, 'a command of a chat failed')
			say(isFault(error) && error.status < 500 ? texts.commandFailed(error.message) : texts.commandBroken)
		})
	}
}

/** Stops these runs, and the sub-agents of the conversation for which no run waits. Returns how many runs were stopped. */
async function stop({ ctx }: IntakeDeps, agent: AgentRef, conversation: string, runs: Followed[]): Promise<number> {
	let count = 0
	// The newest first, so that no run becomes active only to be stopped.
	for (const run of runs.toReversed()) {
		run.stopConfirmed = true
		try {
			run.stopConfirmed = await ctx.use('runs').stop(run.reply.run_id)
			if (run.stopConfirmed) count++
		} catch (error) {
			run.stopConfirmed = false
			ctx.log.error({ err: error }, 'a run could not be stopped from a chat')
		}
	}
	try {
		count += await ctx.use('runs').stopStarted(agent, conversation)
	} catch (error) {
		ctx.log.error({ err: error }, 'sub-agents could not be stopped from a chat')
	}
	return count
}

async function refuse({ marks, notices }: IntakeDeps, channel: LiveChannel, message: IncomingMessage, text: string) {
	await marks.note(channel.id, message)
	notices.say(channel.id, message.chat, text, message.id)
}

/** Emitted in the run that the message started or answers. Only after that run has begun, since it writes its own first event. */
export function reportReceived(ctx: IntakeDeps['ctx'], reply: Reply, message_id: string): void {
	const { run_id, channel_id, chat, agent } = reply
	const thread = chat.thread_id === undefined ? {} : { thread_id: chat.thread_id }
	const payload = { channel_id, chat_id: chat.id, ...thread, message_id }
	const event = { event_type: 'channel.message_received', payload }
	const emit = async (): Promise<void> => {
		if (await ctx.use('runs').appendEvents(reply, [event])) return
		await ctx.emit({ ...event, payload: { ...payload, run_id } }, agent)
	}
	emit().catch((error: unknown) => ctx.log.warn({ err: error, run_id }, 'an event of a channel could not be stored'))
}
