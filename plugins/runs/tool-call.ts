/** Executes one tool call of a model, and writes its events and journal steps. */
import { Fault, messageOf, toWire } from '../../core/errors.ts'
import type { JournalStep } from './journal-step.ts'
import { unawaited } from './run-log.ts'
import type { RunLog } from './run-log.ts'
import type { Logger } from '../../core/log/log.ts'
import type { AgentRef, QuestionText, ToolCall, ToolDefinition, ToolFile, Wait } from '../../core/plugin.ts'
import type { Attachment, NewEvent, ToolCallRequest } from '../../core/protocol.ts'
import { Attached, Pause } from '../../core/runs/tool.ts'
import { agentScope } from '../../core/store/agent-scope.ts'
import type { Op, RecordChange } from '../../core/store/ports.ts'
import { during } from '../../core/util/during.ts'
import { admit } from './call-policy.ts'
import type { Admission, CallPolicy, WantedCall } from './call-policy.ts'
import { showResult } from './results.ts'
import type { ShownResult } from './results.ts'
import { findTool } from '../../sandbox/wire-name.ts'
import { parseArguments } from './tool-specs.ts'

/** The run in which a call is made, and the services that the call needs. */
export interface CallSite {
	run_id: string
	agent: AgentRef
	conversation: string
	signal: AbortSignal
	log: RunLog
	policy: CallPolicy
	/** `ToolCall.ask`. */
	ask(question: QuestionText): Promise<string>
	/** Withdraws questions that the tool did not wait for, before its result is reported. Settles once none is open. */
	closeQuestions?(): Promise<void>
	/** Redacts a result for the agent's model: all secrets except those that a grant or the tool reveals. */
	forModel(text: string, revealed: ReadonlySet<string>): Promise<string>
	/** Characters of a result that the model sees; see results.ts. */
	result_characters: number
	/** The call had begun before the gateway crashed, and its outcome is unknown. */
	interrupted: boolean
	/** Stores the files of a result. Must not throw for a file that cannot be stored. */
	attach(files: readonly ToolFile[]): Promise<StoredFiles>
	/** Explains why the agent does not have this tool; undefined if no plugin can. */
	whyMissing?(name: string): Promise<string | undefined>
}

export interface StoredFiles {
	attachments: Attachment[]
	/** For the model: why other files were omitted. */
	omitted: string[]
	/** The writes by which the run keeps the blobs, in its agent's scope; committed with the result. */
	ops(): Promise<Op[]>
}

export type CallResult =
	| { status: 'done'; ok: boolean; content: string; attachments?: Attachment[] }
	| { status: 'waits'; wait: Wait }
	/** The tool was not called: a person must approve the call first. */
	| { status: 'asks'; wanted: WantedCall }

/** Characters of arguments or results in an event. */
const EVENT_LIMIT = 16 * 1024

const primitiveEvents = { called: 'primitive.called', result: 'primitive.result', failed: 'primitive.failed' }

/**
 * Executes one call. Appends the event of its beginning, and later the event of its end together with its journal step. A failed
 * call is a result for the model too. Throws only if the log cannot be written, or the execution of the run ended before the
 * call.
 */
export async function callTool(
	tools: readonly ToolDefinition[],
	written: ToolCallRequest,
	site: CallSite,
	logger: Logger,
): Promise<CallResult> {
	const tool = findTool(tools, written.name)
	let admission: Admission
	try {
		if (!tool) throw await unknownTool(tools, written, site)
		if (site.interrupted)
			throw new Fault(
				'tool_interrupted',
				`the call of ${tool.name} was interrupted and its outcome is unknown; check before you call it again`,
			)
		admission = await admit(tool, written, site.policy, site.log.redactor)
	} catch (error) {
		return finish(written, site, failure(tool ?? { name: written.name }, written, site, error))
	}
	if (admission.status === 'asks') return admission
	const { request } = admission
	const note = admission.edited ? editNote(request) : ''

	const repeatable = tool.repeatable ?? tool.events === undefined
	const begun: JournalStep | undefined = repeatable ? undefined : { kind: 'begun', call_id: request.id }
	const recorded = site.log.append([calledEvent(tool, request, site)], begun)
	if (repeatable) unawaited(recorded)
	else await recorded

	const revealed = new Set<string>()
	try {
		const args = parseArguments(tool, request.arguments)
		const value = await during(site.signal, async (callSignal) => {
			try {
				return await tool.run(args, callOf(request, site, revealed, callSignal))
			} finally {
				await site.closeQuestions?.()
			}
		})
		// After an abort the value may be incomplete. The run continues elsewhere, and repeats the call.
		if (repeatable) site.signal.throwIfAborted()
		if (value instanceof Pause) return { status: 'waits', wait: value.wait }
		const files = value instanceof Attached ? await site.attach(value.files) : undefined
		const finished = success(tool, request, site, value instanceof Attached ? value.value : value, files)
		return await finish(request, site, withNote(finished, note), revealed, files)
	} catch (error) {
		// The execution of the run failed or ended, not the call.
		if (site.log.isClosed() || site.signal.aborted) throw error
		if (!(error instanceof Fault)) {
			const { run_id, agent } = site
			logger.warn({ err: error, tool: tool.name, run_id, agent: agent.name }, 'a tool failed')
		}
		return finish(request, site, withNote(failure(tool, request, site, error), note))
	}
}

/** The event and step by which a waiting call gets its result: plain data, or a Fault. To be appended with `change`. */
export function answeredCall(
	tools: readonly ToolDefinition[],
	request: ToolCallRequest,
	result: unknown,
	site: Pick<CallSite, 'log' | 'agent' | 'run_id' | 'result_characters'>,
): { event: NewEvent; step: ToolStep; change: RecordChange | undefined } {
	const tool: CalledTool = findTool(tools, request.name) ?? { name: request.name }
	const finished = (result instanceof Fault ? failure : success)(tool, request, site, result)
	return { event: finished.event, ...recordOf(request, site, finished) }
}

type ToolStep = Extract<JournalStep, { kind: 'tool' }>

/** The step of a finished call, the change that stores the complete result, and the function that abridges other versions of it. */
function recordOf(
	{ id: call_id }: ToolCallRequest,
	{ log, agent, run_id, result_characters }: Pick<CallSite, 'log' | 'agent' | 'run_id' | 'result_characters'>,
	{ ok, content: whole }: Finished,
): { step: ToolStep; change: RecordChange | undefined; abridge: ShownResult['abridge'] } {
	const place = { uid: agent.uid, run_id, call_id }
	const { content, size, change, abridge } = showResult(log, place, whole, result_characters)
	return { step: { kind: 'tool', call_id, ok, content, ...(size !== undefined && { size }) }, change, abridge }
}

interface Finished {
	event: NewEvent
	ok: boolean
	/** Complete, as the tool returned it. */
	content: string
}

async function finish(
	request: ToolCallRequest,
	site: CallSite,
	finished: Finished,
	revealed: ReadonlySet<string> = new Set(),
	files?: StoredFiles,
): Promise<CallResult> {
	const { event, ok, content } = finished
	const { step, change, abridge } = recordOf(request, site, finished)
	const attached = files && files.attachments.length > 0 ? { attachments: files.attachments } : {}
	const both: RecordChange | undefined = attached.attachments && {
		scope: agentScope(site.agent.uid),
		ops: async () => [...((await change?.ops()) ?? []), ...((await files?.ops()) ?? [])],
	}
	await site.log.append([event], { ...step, ...attached }, both ?? change)
	return { status: 'done', ok, content: abridge(await site.forModel(content, revealed)), ...attached }
}

async function unknownTool(
	tools: readonly ToolDefinition[],
	{ name }: ToolCallRequest,
	{ policy, whyMissing }: CallSite,
): Promise<Fault> {
	const offered = tools.filter((one) => policy.ruling(one) !== 'deny').map((one) => one.name)
	const why = (await whyMissing?.(name)) ?? `there are: ${offered.join(', ') || 'none'}`
	return new Fault('tool_unknown', `there is no tool "${name}"; ${why}`)
}

/** Tells the model that the result belongs to arguments other than those that it wrote. */
function editNote({ arguments: made }: ToolCallRequest): string {
	return `\n\n[Note from the gateway: a person changed the arguments of this call before it was made, to ${made}]`
}

function withNote(finished: Finished, note: string): Finished {
	return note === '' ? finished : { ...finished, content: finished.content + note }
}

type Logged = Pick<CallSite, 'log'>

/** Cuts a text for an event. */
function eventText(text: string, { log }: Logged): string {
	// Redacted before it is cut, since the cut could leave a part of a secret. A short text is redacted when it is appended.
	if (text.length <= EVENT_LIMIT) return text
	const { text: beginning, dropped } = log.redactor.cut(text, EVENT_LIMIT, 'event')
	return dropped === 0 ? beginning : `${beginning}… [cut: ${dropped} more characters]`
}

type CalledTool = Pick<ToolDefinition, 'name' | 'events'>

export function calledEvent(tool: CalledTool, request: ToolCallRequest, site: Logged): NewEvent {
	const payload = { ...aboutCall(tool, request), arguments: eventText(request.arguments, site) }
	return { event_type: (tool.events ?? primitiveEvents).called, payload }
}

export function success(
	tool: CalledTool,
	request: ToolCallRequest,
	site: Logged,
	value: unknown,
	files?: StoredFiles,
): Finished {
	const content = typeof value === 'string' ? value : (JSON.stringify(value) ?? 'null')
	const event = {
		event_type: (tool.events ?? primitiveEvents).result,
		payload: {
			...aboutCall(tool, request),
			result: eventText(content, site),
			...(files && { attachments: files.attachments }),
		},
	}
	const omitted = (files?.omitted ?? []).map((line) => `[${line}]`)
	return { event, ok: true, content: [content, ...omitted].filter((text) => text !== '').join('\n') }
}

export function failure(tool: CalledTool, request: ToolCallRequest, site: Logged, error: unknown): Finished {
	const { code, message } = error instanceof Fault ? toWire(error) : { code: 'tool_failed', message: messageOf(error) }
	const shortened = eventText(message, site)
	const event = {
		event_type: (tool.events ?? primitiveEvents).failed,
		payload: { ...aboutCall(tool, request), code, message: shortened },
	}
	return { event, ok: false, content: JSON.stringify({ error: { code, message: shortened } }) }
}

function aboutCall(tool: CalledTool, request: ToolCallRequest): Record<string, unknown> {
	const name = tool.events ? (tool.events.payload ?? { tool: tool.name }) : { primitive: tool.name }
	return { ...name, call_id: request.id }
}

/** The key of a call's site. It is a property, so that a copy of the call has it too. */
const SITE = Symbol('site')

interface PlacedCall extends ToolCall {
	[SITE]?: CallSite
}

/** The site of a call that a tool was given, for nested calls. */
export function siteOf(call: PlacedCall): CallSite {
	if (!call[SITE]) throw new TypeError('pass the same call object that the outer tool got')
	return call[SITE]
}

/** `signal`: of this call only. */
function callOf(request: ToolCallRequest, site: CallSite, revealed: Set<string>, signal: AbortSignal): PlacedCall {
	return {
		[SITE]: site,
		run_id: site.run_id,
		agent: site.agent,
		conversation: site.conversation,
		key: `${site.run_id}:${request.id}`,
		signal,
		emit: (event) => unawaited(site.log.append([event])),
		pause: (question) => new Pause(question),
		ask: site.ask,
		waitFor: (run_id) => new Pause({ run_id }),
		reveal: (secret_id) => void revealed.add(secret_id),
		attach: (value, files) => new Attached(value, files),
	}
}
