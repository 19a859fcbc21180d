/** Provides the active skills of an agent as tools. */
import type { AgentRef, Context, ToolDefinition } from '../../core/plugin.ts'
import type { Entry } from '../../core/store/ports.ts'
import { BoundedMap } from '../../core/util/bounded-map.ts'
import type { SkillDocument } from './document.ts'
import type { ProgramHosts } from './hosts.ts'
import type { Library } from './library.ts'
import { checkArguments, schemaOf } from './parameters.ts'
import { entriesOf, indexOf } from './records.ts'
import type { Index, IndexEntry } from './records.ts'
import type { CallTracker } from './call-tracker.ts'
import { notApproved, READ_FILE, readFileTool, shownAs } from './read-file.ts'
import { useSkill } from './use.ts'

/** What an agent's skills contribute to its runs. */
interface Provided {
	/** Version of the index from which this was made. */
	rev: string
	tools: ToolDefinition[]
	/** The parts of descriptions that exceed the limit for tools. */
	about: string[]
	hasPrograms: boolean
}

/** Limit of agents whose tools are cached. */
const AGENTS_LIMIT = 1_000
/** Limit of characters of a tool's description in the APIs of all models. */
const DESCRIPTION_LIMIT = 1024

/** Adds the skills of each agent to its tools and its prompt. Unless they change, this costs a run one read of the store. */
export function addSkillTools(ctx: Context, library: Library, hosts: ProgramHosts, callTracker: CallTracker): void {
	const known = new BoundedMap<string, Provided>(AGENTS_LIMIT)

	const toolOf = (entry: IndexEntry, document: SkillDocument): ToolDefinition => ({
		...shownAs(entry),
		aliases: [entry.name],
		description: describe(document).text,
		parameters: schemaOf(document.parameters),
		repeatable: true,
		check: (args) => void checkArguments(document.parameters, args),
		events: {
			called: 'skill.invoked',
			result: 'skill.completed',
			failed: 'skill.failed',
			payload: { skill: entry.name, skill_id: entry.id },
		},
		run: (given, call) =>
			callTracker.track(entry.id, async (signal) => {
				const args = checkArguments(document.parameters, given)
				// Read again, so that only the approved document runs, even if the stored one was changed.
				const approved = await library.approved(call.agent, entry)
				if (approved) return useSkill(ctx, hosts, { skill_id: entry.id, ...approved, args, call, signal })
				throw notApproved(entry.name)
			}),
	})

	const made = async (agent: AgentRef, index: Entry<Index>): Promise<Provided> => {
		const tools: ToolDefinition[] = []
		const about: string[] = []
		let hasPrograms = false
		let hasFiles = false
		for (const entry of index.value.skills) {
			if (entry.status !== 'active') continue
			const approved = await library.approved(agent, entry)
			if (!approved) continue
			const { document, files } = approved
			tools.push(toolOf(entry, document))
			const { rest } = describe(document)
			if (rest !== '') about.push(`${entry.tool}, continued: ${rest}`)
			hasPrograms ||= document.program !== null
			hasFiles ||= files.length > 1
		}
		if (hasFiles) tools.push(readFileTool(ctx, library))
		return { rev: index.rev, tools, about, hasPrograms }
	}

	const current = async (agent: AgentRef): Promise<Provided | undefined> => {
		const index = await indexOf(ctx.store, agent)
		if (!index) return undefined
		let provided = known.get(agent.uid)
		if (provided?.rev !== index.rev) {
			provided = await made(agent, index)
			known.set(agent.uid, provided)
		}
		if (provided.hasPrograms) hosts.warm()
		return provided
	}

	ctx.tools(async (agent) => (await current(agent))?.tools ?? [])
	ctx.extend('prompt', {
		async stable(agent) {
			const { tools = [], about = [] } = (await current(agent)) ?? {}
			const names = tools.filter((tool) => tool.name !== READ_FILE).map(({ name }) => name)
			if (names.length === 0) return undefined
			const first = `Your skills are tools that an operator approved: ${names.join(', ')}. If one fits the task, call it first: it does the work, or returns instructions to follow.`
			return [first, ...about].join('\n')
		},
	})
	ctx.extend('tools', {
		async whyMissing(agent, name) {
			const skills = await entriesOf(ctx.store, agent)
			// The skill is not approved, so no text of it may reach a model.
			const isWaiting = skills.some((one) => one.status === 'quarantined' && [one.tool, one.name].includes(name))
			return isWaiting ? "the skill of that name is waiting for an operator's approval" : undefined
		},
	})
	ctx.on('agent.deleted', ({ payload }) => known.delete(String(payload.uid)))
}

/** The description of a tool within the limit, and the rest of it. */
function describe({ program, description }: SkillDocument): { text: string; rest: string } {
	const how = program ? '' : '\n\nReturns instructions; read and follow them.'
	const room = DESCRIPTION_LIMIT - how.length
	if (description.length <= room) return { text: description + how, rest: '' }
	const space = description.lastIndexOf(' ', room - 1)
	const end = space > room / 2 ? space : room - 1
	return {
		text: `${description.slice(0, end).toWellFormed()}…${how}`,
		rest: description.slice(end).trim().toWellFormed(),
	}
}
