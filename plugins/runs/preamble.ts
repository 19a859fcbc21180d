/** The preamble: text that a model gets besides persona and conversation. The stable part is separate from that of a single run. */
import { messageOf } from '../../core/errors.ts'
import type { Context, Extension, ToolDefinition } from '../../core/plugin.ts'
import { wireName } from '../../sandbox/wire-name.ts'
import type { NewEvent } from '../../core/protocol.ts'
import { BoundedMap } from '../../core/util/bounded-map.ts'
import { within } from '../../core/util/deadline.ts'
import type { AgentRecord } from '../agents/contract.ts'
import type { PromptRun, RunRecord, ToldRun } from './contract.ts'

type PromptDeps = Pick<Context, 'extensions' | 'log'>

const STABLE_LIMIT = 16 * 1024
const RUN_LIMIT = 2 * 1024
const DEADLINE_MS = 5_000

/** The system message: the persona, then the parts of plugins. Runs with the same settings get the same bytes, for prompt caching. */
export async function systemFor(
	ctx: PromptDeps,
	run: Pick<RunRecord, 'persona' | 'tools'>,
	agent: AgentRecord,
	tools: readonly ToolDefinition[],
): Promise<string | null> {
	const persona = run.persona ?? agent.persona
	if (!hasPreamble(run, agent)) return persona
	const own = `You are the agent "${agent.name}". Text in <context> tags right before a message comes from the gateway that runs you: the time, the place and the cause of your work. The people you talk to do not see that text, these instructions, or the descriptions of your tools.`
	const parts = await partsOf(
		ctx,
		({ value, run: call }) => value.stable && call(() => value.stable?.(agent)),
		(text) => shortened(text, STABLE_LIMIT),
	)
	const named = wireNamer(tools)
	const told = [agent.name.includes('.') ? named(own) : own, ...parts.map((part) => part && named(part))]
	return [persona, ...told].filter(Boolean).join('\n\n')
}

/** The context that a model gets before the prompt of a run, and the events of the plugins that contribute to it. */
export interface AboutRun {
	content: string
	events: NewEvent[]
}

/** Time, place and cause of a run, composed once when it begins; undefined for a run without preamble. */
export async function aboutRun(ctx: PromptDeps, run: RunRecord, agent: AgentRecord): Promise<AboutRun | undefined> {
	if (!hasPreamble(run, agent)) return undefined
	const { run_id, conversation, trigger, prompt, place } = run
	const about: PromptRun = { run_id, agent: { name: agent.name, uid: agent.uid }, conversation, trigger, prompt }
	const events: NewEvent[] = []
	const textOf = (answer: string | ToldRun | undefined, plugin: string): string | undefined => {
		if (typeof answer !== 'object') return shortened(answer, RUN_LIMIT)
		// Event types of other plugins and of the gateway are reserved.
		if (answer.event?.event_type.startsWith(`${plugin}.`)) events.push(plainEvent(answer.event))
		return shortened(answer.text, RUN_LIMIT)
	}
	const parts = await partsOf(ctx, ({ value, run: call }) => value.run && call(() => value.run?.(about)), textOf)
	const time = timeOf(new Date(run.started_at ?? run.created_at), agent.config.timezone)
	const lines = [
		`Time: ${time}`,
		place && `Place: ${place}`,
		`Started by: ${causes[trigger] ?? `a message (${trigger})`}`,
	]
	// The lines contain names of people and chats, which must not be able to close the element.
	const told = [...lines, ...parts]
		.filter(Boolean)
		.join('\n')
		.replaceAll(/<(?=\s*(?:\/\s*)?(?:context|earlier))/gi, '‹')
	return { content: `<context>\n${told}\n</context>`, events }
}

/** An event that can always be stored, whatever a plugin put into it. */
function plainEvent({ event_type, payload }: NewEvent): NewEvent {
	return { event_type, payload: { ...(JSON.parse(JSON.stringify(payload)) as NewEvent['payload']) } }
}

/** A run without tools is a task of the gateway itself, such as merging memories. */
function hasPreamble({ tools }: Pick<RunRecord, 'tools'>, { config }: AgentRecord): boolean {
	return tools !== 'none' && config.preamble !== false
}

const causes: Readonly<Record<string, string>> = {
	api: 'a request to the HTTP API',
	chat: 'a message in the chat API',
	openai: 'a program that uses the OpenAI-compatible API',
	mcp: 'an MCP client',
	webhook: 'a delivery to your webhook; nobody waits for the answer',
	heartbeat: 'your schedule; nobody waits for the answer',
	subagent: 'another run of yours, which gave you this task and gets your answer',
}

/** The parts of all plugins, in their order. The part of a plugin that throws, or takes longer than 5 s, is omitted. */
function partsOf<Answer>(
	{ extensions, log }: PromptDeps,
	ask: (extension: Extension<'prompt'>) => Answer | undefined | Promise<Answer | undefined>,
	textOf: (answer: Answer | undefined, plugin: string) => string | undefined,
): Promise<(string | undefined)[]> {
	const partOf = async (extension: Extension<'prompt'>): Promise<string | undefined> => {
		const { plugin } = extension
		try {
			return textOf(await within(DEADLINE_MS, 'it', ask(extension)), plugin)
		} catch (error) {
			log.warn({ plugin }, `a plugin failed to provide its part of the preamble: ${messageOf(error)}`)
			return undefined
		}
	}
	return Promise.all(extensions('prompt').map(partOf))
}

function shortened(text: string | undefined, limit: number): string | undefined {
	return text?.slice(0, limit).trim()
}

/** Cached sets of tool names, and cached parts for each: nearly all are the same for every run. */
const SETS = 8
const PARTS = 128
/** Characters of a part that is cached. */
const KEPT_LIMIT = 4 * 1024
const partsByNames = new BoundedMap<string, BoundedMap<string, string>>(SETS)

/** Returns a function that replaces the names of tools in a part by those that models see, without dots. */
function wireNamer(tools: readonly ToolDefinition[]): (part: string) => string {
	const dotted = tools.flatMap(({ name }) => (name.includes('.') ? name : []))
	const names = dotted.join()
	let known = partsByNames.get(names)
	if (!known) partsByNames.set(names, (known = new BoundedMap<string, string>(PARTS)))
	return (part) => {
		let named = known.get(part)
		if (named !== undefined) return named
		named = part
		for (const name of dotted) named = named.replaceAll(name, wireName(name))
		if (part.length <= KEPT_LIMIT) known.set(part, named)
		return named
	}
}

/** Times that are kept. */
const ZONES = 64
/** By minute and zone: creating a formatter takes as long as the rest of a preamble. */
const times = new BoundedMap<string, string>(ZONES)
const MINUTE_MS = 60_000

/** Such as `Monday 23 November 2026, 03:10 (Europe/Berlin, GMT+1)`. */
function timeOf(at: Date, timeZone?: string): string {
	const key = `${Math.floor(at.getTime() / MINUTE_MS)} ${timeZone}`
	let time = times.get(key)
	if (time === undefined) times.set(key, (time = formatTime(at, timeZone)))
	return time
}

function formatTime(at: Date, timeZone?: string): string {
	const formatter = new Intl.DateTimeFormat('en-GB', {
		...(timeZone !== undefined && { timeZone }),
		weekday: 'long',
		year: 'numeric',
		month: 'long',
		day: 'numeric',
		hour: '2-digit',
		minute: '2-digit',
		hourCycle: 'h23',
		timeZoneName: 'shortOffset',
	})
	const zone = timeZone ?? formatter.resolvedOptions().timeZone
	const parts = formatter.formatToParts(at)
	const part = (type: string): string => parts.find((one) => one.type === type)?.value ?? ''
	const date = `${part('weekday')} ${part('day')} ${part('month')} ${part('year')}`
	return `${date}, ${part('hour')}:${part('minute')} (${zone}, ${part('timeZoneName')})`
}
