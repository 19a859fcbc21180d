/** Handles an incoming message. */
import { setTimeout as sleep } from 'node:timers/promises'
import { isFault } from '../../../core/errors.ts'
import type { AgentRef, QuestionText } from '../../../core/plugin.ts'
import { causedBy } from '../../../core/util/context.ts'
import type { IncomingMessage } from '../adapter.ts'
import type { BoundChat, LiveChannel } from '../parts.ts'
import type { OpenQuestion } from '../../runs/contract.ts'
import { accept, KnownMessage } from './accept.ts'
import type { AcceptDeps } from './accept.ts'
import { commandIn, compactText, contextText, modelText, usageText } from './commands.ts'
import type { Command } from './commands.ts'
import type { FollowedRun } from './followed.ts'
import type { Notices } from './notices.ts'
import { reportReceived } from './report.ts'
import { texts } from './texts.ts'

export interface IntakeDeps extends AcceptDeps {
	notices: Notices
	/** Sends the open question of a run again if its chat did not receive it. */
	resendQuestion(run: FollowedRun): void
}

/** How long an answer waits until its question was sent. */
const SENDING_MS = 2_000
/** Sorts after every time in ISO 8601. */
const LAST = '~'
/** Attempts to find the agent of a chat, if it is deleted meanwhile. */
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
		const isAddressed = message.addressed || (bound !== undefined && answer === 'all')
		if (!isAllowed || !isAddressed || isBlank) return marks.skip(channel.id, message)
		if (await marks.isKnown(channel.id, message)) return marks.skip(channel.id, message)
		try {
			return await causedBy({ actor: { kind: 'channel', id: channel.id, label: sender.id } }, () =>
				bound ? receiveBound(deps, channel, bound, message) : receiveUnbound(deps, channel, message),
			)
		} catch (error) {
			if (error instanceof KnownMessage) return
			if (!isFault(error, 'not_found') || attempt === ATTEMPTS) throw error
		}
	}
}

/** Answers a chat without an agent with a hint on how to pair it, at most a few times a minute. */
async function receiveUnbound(
	{ registry, marks, notices }: IntakeDeps,
	channel: LiveChannel,
	message: IncomingMessage,
) {
	const { chat } = message
	const mayHint = notices.mayHint(channel.id, chat.id)
	// Over the limit, nothing is recorded or sent.
	if (!mayHint) return marks.skip(channel.id, message)
	const about = { channel_id: channel.id, chat_id: chat.id }
	const isStart = commandIn(message.text)?.name === 'start'
	const text = isStart
		? texts.pairing({ ...about, ...(await registry.pairingCode(channel.id, chat.id, message.sender.id)) })
		: texts.unpaired(about)
	await marks.record(channel.id, message)
	notices.hint(channel.id, chat, text, message.id)
}

async function receiveBound(
	deps: IntakeDeps,
	channel: LiveChannel,
	bound: BoundChat,
	message: IncomingMessage,
): Promise<void> {
	const { chat, text } = message
	const command = message.addressed ? commandIn(text) : undefined
	if (command) return handleCommand(deps, channel, bound, message, command)
	const isText = text.trim() !== ''
	if (!isText && !message.attachments) return decline(deps, channel, message, texts.unreadable(message.attachment))

	await deps.marks.addAgent(channel.id, message, bound.agent)
	const conversation = await deps.sessions.current(channel.id, bound, chat)
	const asking = askingRun(deps.runs.inChat(bound.agent.uid, channel.id, chat), conversation)
	if (asking && !isText) return decline(deps, channel, message, texts.answerInText)
	if (asking && !mayAnswer(bound, message)) {
		// Any other text of that person is an ordinary message.
		if (asking.question && isAnswer(asking.question, text)) return decline(deps, channel, message, texts.notYours)
	} else if (
		asking &&
		(await wasQuestionSent(asking)) &&
		(await answerQuestion(deps, channel, bound.agent, message, asking))
	)
		return
	if (!(await accept(deps, channel, bound, message, conversation))) await decline(deps, channel, message, texts.tooMuch)
	// The new run waits for the answer to a question that the platform may have refused, such as while the bot was blocked.
	if (asking) deps.resendQuestion(asking)
}

/** The run that waits for an answer from this conversation; of several, the one whose question was sent last. */
function askingRun(runs: readonly FollowedRun[], conversation: string): FollowedRun | undefined {
	const sentAt = ({ sendingQuestion, question, said, said_at }: FollowedRun): string =>
		sendingQuestion ? LAST : said === question?.question_id ? said_at : ''
	return runs
		.filter(({ question, reply }) => question && reply.conversation === conversation)
		.reduce<FollowedRun | undefined>((last, one) => (last && sentAt(last) >= sentAt(one) ? last : one), undefined)
}

/** Whether the question was sent. A quick reply may arrive before the platform has confirmed it, so this waits up to 2 s. */
async function wasQuestionSent(run: FollowedRun): Promise<boolean> {
	const asked = run.question?.question_id
	if (run.said !== asked && run.sendingQuestion)
		await Promise.race([run.sendingQuestion.promise, sleep(SENDING_MS, undefined, { ref: false })])
	return asked !== undefined && run.said === asked
}

/** Returns false if no run waits for the answer any more. */
async function answerQuestion(
	deps: IntakeDeps,
	channel: LiveChannel,
	agent: AgentRef,
	message: IncomingMessage,
	run: FollowedRun,
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
			await decline(deps, channel, message, texts.notApproved(error.message))
			return true
		}
		throw error
	}
	run.question = null
	await marks.accepted(channel.id, message)
	void reportReceived(ctx, run.reply, message.id)
	return true
}

function mayAnswer({ answered_by }: BoundChat, { sender }: IncomingMessage): boolean {
	return answered_by === undefined || answered_by === sender.id
}

/** Whether the text is probably an answer to the question. */
function isAnswer(question: OpenQuestion, text: string): boolean {
	if (question.kind === 'approval') return /^(approve|edit|refuse|#?\d)/i.test(text.trim())
	const { options = [] } = question
	return options.includes(answerOf(question, text))
}

/** The option with this number or text; otherwise the text unchanged. */
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
		await marks.addAgent(channel.id, message, bound.agent)
		await sessions.begin(channel.id, bound, chat, await marks.ops(channel.id, message, bound.agent))
		await marks.accepted(channel.id, message)
	} else await marks.record(channel.id, message)
	const { agent } = bound
	// Other people see only what the agent tells them.
	if (['usage', 'context', 'compact'].includes(command.name) && !mayAnswer(bound, message))
		return say(texts.notYourCommand)
	switch (command.name) {
		case 'start':
			return say(texts.start(agent.name))
		case 'whoami':
			return say(texts.whoami({ chat_id: chat.id, sender_id: sender.id, agent: agent.name, channel_id: channel.id }))
		case 'new':
		case 'stop': {
			// Not awaited: a run that is slow to stop must not delay messages of other chats.
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

	/** Runs in the background, so that messages of other chats are not delayed. */
	function answer(ask: () => Promise<string>): void {
		ask().then(say, (error: unknown) => {
			deps.ctx.log.warn({ err: error, command: command.name }, 'a command of a chat failed')
			say(isFault(error) && error.status < 500 ? texts.commandFailed(error.message) : texts.commandBroken)
		})
	}
}

/** Stops these runs, and sub-agents of the conversation that no run waits for. Returns the number of stopped runs. */
async function stop({ ctx }: IntakeDeps, agent: AgentRef, conversation: string, runs: FollowedRun[]): Promise<number> {
	let count = 0
	// Newest first, so that stopping one run does not start the next.
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

/** Accepts the message without a run, and answers with a notice. */
async function decline({ marks, notices }: IntakeDeps, channel: LiveChannel, message: IncomingMessage, text: string) {
	await marks.record(channel.id, message)
	notices.say(channel.id, message.chat, text, message.id)
}
