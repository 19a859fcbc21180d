/** One message on its way to its reply. */
import { AnswerStream } from '../../core/answer-stream.ts'
import type { AnswerEnd } from '../../core/answer-stream.ts'
import { Fault, isFault } from '../../core/errors.ts'
import type { FaultCode } from '../../core/errors.ts'
import type { AgentRef, Context } from '../../core/plugin.ts'
import type { Runs } from '../runs/contract.ts'
import { promptOf } from './message.ts'
import type { ChatMessage } from './message.ts'
import { ToolCalls } from './tool-calls.ts'
import type { ToolListener } from './tool-calls.ts'

export type Reply =
	| {
			status: 'answered'
			content: string
			/** The tokens that the listener was given add up to `content`. */
			whole: boolean
			metadata: Metadata
	  }
	| { status: 'failed'; code: FaultCode; message: string }

export interface Metadata {
	/** Null where no model was asked. */
	model: string | null
	/** Input and output tokens. */
	tokens_used: number
	processing_time_ms: number
	/** Names of the tools that were called, each once. */
	skills_invoked: string[]
	/** The reply is a question, and the next message of the session its answer. */
	question_id?: string
}

/** Must not throw. */
export interface Listener extends ToolListener {
	/** A piece of what the agent says, never empty. */
	token(content: string): void
}

export interface Exchange {
	run_id: string
	/** Rejects with the reason of `signal` where that aborts first; the run goes on then. */
	reply: Promise<Reply>
}

type Place = Pick<Context, 'events' | 'use'>

const nobody: Listener = { token() {}, invokeStart() {}, invokeEnd() {} }

/**
 * Says something to an agent in its current session: the answer to its question where it has asked one here, otherwise a
 * new run. Settles once that is durable. The listener may hear of it before, and hears nothing once the reply has settled.
 *
 * Throws `not_found`, `queue_full`, or `conflict` where the session waits for the answer to a question of another kind of
 * run: nobody on this surface has seen it.
 */
export async function begin(
	ctx: Place,
	agent: AgentRef,
	said: ChatMessage,
	signal: AbortSignal,
	listener: Listener = nobody,
): Promise<Exchange> {
	const began = performance.now()
	const answer = new AnswerStream((text) => listener.token(text))
	const calls = new ToolCalls(listener)
	const reply = Promise.withResolvers<Reply>()
	reply.promise.catch(() => {}) // who has left does not look at it
	let run_id: string | undefined
	let isOver = false
	let unsubscribe = (): void => {}
	let unwatch = (): void => {}

	const stop = (): void => {
		isOver = true
		unsubscribe()
		unwatch()
		signal.removeEventListener('abort', leave)
	}
	const listen = (run: string): void => {
		if (run === run_id || signal.aborted) return
		unsubscribe()
		run_id = run
		unsubscribe = ctx.events.subscribe({ run_id: run }, ({ event }) => {
			calls.hear(event)
			const end = answer.hear(event)
			if (end) finish(end)
		})
	}
	const finish = (end: AnswerEnd): void => {
		stop()
		if (end.status === 'failed') return reply.resolve({ status: 'failed', ...end.error })
		const { text, isWhole, model, usage } = answer
		const metadata: Metadata = {
			model,
			tokens_used: usage.input_tokens + usage.output_tokens,
			processing_time_ms: Math.round(performance.now() - began),
			skills_invoked: [...calls.skills],
			...(end.status === 'asks' && { question_id: end.question_id }),
		}
		reply.resolve({ status: 'answered', content: text, whole: isWhole, metadata })
	}
	const leave = (): void => {
		stop()
		reply.reject(signal.reason)
	}

	signal.addEventListener('abort', leave, { once: true })
	if (signal.aborted) leave()
	try {
		const runs = ctx.use('runs')
		const { run_id: run, answered } = await say(runs, agent, promptOf(said), listen)
		if (!isOver) {
			unwatch = runs.watchAsked(run, (question) => {
				if (question && question.question_id !== answered) finish(answer.askBelow(question))
			})
		}
		return { run_id: run, reply: reply.promise }
	} catch (error) {
		stop()
		throw error
	}
}

/** `listen` is called before anything can happen in the run. `answered`: the question to which this was the answer. */
async function say(
	runs: Runs,
	agent: AgentRef,
	prompt: string,
	listen: (run_id: string) => void,
): Promise<{ run_id: string; answered?: string }> {
	const conversation = await runs.session(agent)
	const asked = await questionIn(runs, agent, conversation)
	if (asked) {
		listen(asked.run_id)
		try {
			await runs.answer(agent, asked.question_id, prompt)
			return { run_id: asked.run_id, answered: asked.question_id }
		} catch (error) {
			// Somebody else answered, or the run was stopped meanwhile: then it is a message like any other.
			if (!isFault(error, 'already_answered', 'conflict', 'not_found')) throw error
		}
	}
	const also = (run_id: string): Promise<[]> => {
		listen(run_id)
		return Promise.resolve([])
	}
	return { run_id: (await runs.start(agent, { prompt, conversation, trigger: 'chat', also })).run_id }
}

/** The question for whose answer the conversation waits, of its active run or of a sub-agent, and that active run. */
async function questionIn(
	runs: Runs,
	agent: AgentRef,
	conversation: string,
): Promise<{ run_id: string; question_id: string } | undefined> {
	const run = await runs.active(agent, conversation)
	const asked = run && (await runs.asked(run))
	if (!asked) return undefined
	const { run_id } = run
	const { question_id } = asked
	if (run.trigger === 'chat') return { run_id, question_id }
	throw new Fault(
		'conflict',
		`this session waits for the answer to a question of run ${run_id}, which was started elsewhere; ` +
			`answer it by POST /v1/agents/${agent.name}/ask-responses/${question_id} of the main API, or begin a new session`,
	)
}
