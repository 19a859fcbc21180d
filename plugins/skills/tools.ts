/** The tools for an agent's active skills during runs. */
import { Fault } from '../../core/errors.ts'
import type { AgentRef, Context, ToolDefinition } from '../../core/plugin.ts'
import type { Entry } from '../../core/store/ports.ts'
import { BoundedMap } from '../../core/util/bounded-map.ts'
import type { SkillDocument } from './document.ts'
import type { Library } from './library.ts'
import { checkArguments, schemaOf } from './parameters.ts'
import type { ProgramHosts } from './program.ts'
import { indexOf } from './records.ts'
import type { Index, IndexEntry } from './records.ts'
import type { UnderWay } from './under-way.ts'
import { useSkill } from './use.ts'

export interface SkillTools {
	/** Costs one read of the store while the agent's skills do not change. */
	provide(agent: AgentRef): Promise<ToolDefinition[]>
	forget(agent_uid: string): void
}

interface Provided {
	/** Version of the index from which they were made. */
	rev: string
	tools: ToolDefinition[]
	hasPrograms: boolean
}

type SkillDeps = Pick<Context, 'store' | 'find' | 'use' | 'toolbox' | 'log' | 'redactor'>

/** Limit of agents whose tools are cached. */
const AGENTS_LIMIT = 1_000

export function skillTools(ctx: SkillDeps, library: Library, hosts: ProgramHosts, underWay: UnderWay): SkillTools {
	const known = new BoundedMap<string, Provided>(AGENTS_LIMIT)

	const toolOf = (entry: IndexEntry, { program, description, parameters }: SkillDocument): ToolDefinition => ({
		name: entry.tool,
		aliases: [entry.name],
		description: program ? description : `${description}\n\nAnswers with instructions; read them and follow them.`,
		parameters: schemaOf(parameters),
		repeatable: true,
		check: (args) => void checkArguments(parameters, args),
		events: {
			called: 'skill.invoked',
			result: 'skill.completed',
			failed: 'skill.failed',
			payload: { skill: entry.name, skill_id: entry.id },
		},
		run: (given, call) =>
			underWay.track(entry.id, async (signal) => {
				const args = checkArguments(parameters, given)
				// Read again: only the approved document runs, even if the store was changed since.
				const document = await library.approved(call.agent, entry)
				if (document) return useSkill(ctx, hosts, { skill_id: entry.id, document, args, call, signal })
				throw new Fault(
					'permission_denied',
					`the skill "${entry.name}" is no longer what was approved; an operator must review it`,
				)
			}),
	})

	const made = async (agent: AgentRef, index: Entry<Index>): Promise<Provided> => {
		const tools: ToolDefinition[] = []
		let hasPrograms = false
		for (const entry of index.value.skills) {
			if (entry.status !== 'active') continue
			const document = await library.approved(agent, entry)
			if (!document) continue
			tools.push(toolOf(entry, document))
			hasPrograms ||= document.program !== null
		}
		return { rev: index.rev, tools, hasPrograms }
	}

	return {
		async provide(agent) {
			const index = await indexOf(ctx.store, agent)
			if (!index) return []
			let provided = known.get(agent.uid)
			if (provided?.rev !== index.rev) {
				provided = await made(agent, index)
				known.set(agent.uid, provided)
			}
			if (provided.hasPrograms) hosts.warm()
			return provided.tools
		},
		forget: (agent_uid) => known.delete(agent_uid),
	}
}
