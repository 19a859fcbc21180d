import type { Server } from '@hapi/hapi'
import { Joi } from '../../core/util/lazy-joi.ts'
import { suggest } from '../../config/suggest.ts'
import { Fault } from '../../core/errors.ts'
import type { FieldError } from '../../core/errors.ts'
import type { Context, ToolDefinition } from '../../core/plugin.ts'
import { reaches } from '../shared/agent-limit.ts'
import type { AgentLimit } from '../shared/agent-limit.ts'
import { AGENT_NAME } from '../shared/agent-name.ts'
import { invalidField } from '../shared/invalid-field.ts'
import { scoped } from '../shared/scopes.ts'
import { matches } from '../../core/util/pattern.ts'
import { config, configChange, configKeys } from './config-schema.ts'
import type { AgentConfig, AgentRecord, Agents, AgentSkills, ToolPolicy } from './contract.ts'
import { formerNames, renamedKeys, renamesIn } from './former-names.ts'
import { namesOf } from './tool-policy.ts'

const PERSONA_LIMIT_BYTES = 10 * 1024

const validName = Joi.string()
	.pattern(AGENT_NAME)
	.message('{#label} must be 1 to 64 of A-Z a-z 0-9 - _ . and begin with a letter or digit')
	.description('Name of the agent.')
	.example('ada')

const persona = Joi.string()
	.allow('', null)
	.max(PERSONA_LIMIT_BYTES, 'utf8')
	.description('System persona, at most 10 KiB.')

const strict = { convert: false } as const
const example = {
	name: 'ada',
	persona: 'You are a careful librarian.',
	config: { temperature: 0.2 },
	created_at: '2026-11-02T09:30:00.000Z',
}
const shown = Joi.object({
	name: validName.required(),
	persona: Joi.string().allow('', null).required(),
	config: Joi.object().unknown().required(),
	created_at: Joi.string().isoDate().required(),
})
	.id('Agent')
	.example(example)
const changed = shown
	.keys({
		warnings: Joi.array()
			.items(Joi.object({ path: Joi.string().required(), message: Joi.string().required() }))
			.description(
				'Keys of `config` that have another name now or that the gateway stores but does not use, and patterns of `config.tools` that match no tool; absent if there are none.',
			),
	})
	.id('ChangedAgent')
const listed = Joi.array().items(
	Joi.object({ name: validName.required(), created_at: Joi.string().isoDate().required() }),
)
const detailed = shown
	.keys({
		skills: Joi.array()
			.items(Joi.object({ id: Joi.string().required(), name: Joi.string().required() }))
			.required(),
	})
	.id('AgentDetails')
	.example(
		{ ...example, skills: [{ id: '0197a4c2-60aa-7d10-8a55-90c1d2e3f405', name: 'meeting-notes' }] },
		{ override: true },
	)
const params = Joi.object({ name: validName.required() })

export function routes(server: Server, ctx: Context, agents: Agents): void {
	const skillsOfAgents = (): AgentSkills | undefined =>
		ctx.extensions('agent').find(({ value }) => value.skills)?.value.skills
	const ext = { onPostAuth: formerNames(renamedKeys) }

	server.route<{ Payload: { name: string; persona?: string | null; config?: AgentConfig } }>({
		method: 'POST',
		path: '/v1/agents',
		options: {
			id: 'createAgent',
			description: 'Create an agent',
			tags: ['api', 'agents'],
			auth: scoped('agents:write'),
			plugins: { auth: { agents: 'checked' }, openapi: { errors: [403, 409] } },
			ext,
			validate: {
				payload: Joi.object({ name: validName.required(), persona, config })
					.required()
					.prefs(strict)
					.example({ name: 'ada', persona: 'You are a careful librarian.', config: { temperature: 0.2 } }),
			},
			response: { status: { 201: changed } },
		},
		handler: async (request, h) => {
			refuseOtherName(request.auth.credentials, request.payload.name)
			const { approved, fields } = withoutApprovals(request.payload)
			if (approved.length > 0) {
				const message = 'config.approved_skills must be empty, since a new agent has no skills yet'
				throw invalidField('config.approved_skills', message)
			}
			const agent = await agents.create(fields)
			return h.response({ ...view(agent), ...(await warningsAbout(ctx, agent, fields, renamesIn(request))) }).code(201)
		},
	})
	server.route({
		method: 'GET',
		path: '/v1/agents',
		options: {
			id: 'listAgents',
			description: 'List agents',
			tags: ['api', 'agents'],
			auth: scoped('agents:read'),
			plugins: { auth: { agents: 'checked' } },
			response: { status: { 200: listed } },
		},
		handler: async ({ auth }) => {
			const list: { name: string; created_at: string }[] = []
			for await (const { name, created_at } of agents.visibleTo(auth.credentials).list())
				list.push({ name, created_at })
			return list
		},
	})
	server.route<{ Params: { name: string } }>({
		method: 'GET',
		path: '/v1/agents/{name}',
		options: {
			id: 'getAgent',
			description: 'Read an agent',
			tags: ['api', 'agents'],
			auth: scoped('agents:read'),
			validate: { params },
			response: { status: { 200: detailed } },
		},
		handler: async (request) => {
			const agent = await agents.get(request.params.name)
			const skills = (await skillsOfAgents()?.active(agent)) ?? []
			return { ...view(agent), skills }
		},
	})
	server.route<{ Params: { name: string }; Payload: { persona?: string | null; config?: Record<string, unknown> } }>({
		method: 'PATCH',
		path: '/v1/agents/{name}',
		options: {
			id: 'updateAgent',
			description: 'Change an agent',
			notes:
				'`config.approved_skills` approves skills in quarantine, by their ids; if one is unknown, nothing changes. For a program that declares secrets this also requires the scope `vault:write` or `*`.',
			tags: ['api', 'agents'],
			auth: scoped('agents:write'),
			plugins: { openapi: { errors: [409] } },
			ext,
			validate: {
				params,
				payload: Joi.object({ persona, config: configChange })
					.required()
					.prefs(strict)
					.example({ config: { temperature: 0.7, limits: { steps: 20 } } }),
			},
			response: { status: { 200: changed } },
		},
		handler: async (request) => {
			const { approved, fields } = withoutApprovals(request.payload)
			const approve = async (agent: AgentRecord): Promise<void> => {
				if (approved.length === 0) return
				const skills = skillsOfAgents()
				if (!skills) throw new Fault('unavailable', 'no plugin that approves skills is running')
				await skills.approve(agent, approved, request.auth.credentials)
			}
			const agent = await agents.update(request.params.name, fields, approve)
			return { ...view(agent), ...(await warningsAbout(ctx, agent, fields, renamesIn(request))) }
		},
	})
	server.route<{ Params: { name: string } }>({
		method: 'DELETE',
		path: '/v1/agents/{name}',
		options: {
			id: 'deleteAgent',
			description: 'Delete an agent with everything that belongs to it',
			notes:
				'Stops its runs, and removes its conversation, memories, skills, MCP servers, heartbeats and grants. Its events stay in the audit log until events.retention_days.',
			tags: ['api', 'agents'],
			auth: scoped('agents:write'),
			validate: { params },
		},
		handler: async (request, h) => {
			await agents.remove(request.params.name)
			return h.response().code(204)
		},
	})
}

/** A token that is limited to some agents may create only agents with matching names. */
function refuseOtherName(caller: AgentLimit, name: string): void {
	if (reaches(caller, name)) return
	throw new Fault('forbidden', `the token is only for agents whose names match ${caller.agents?.join(' or ')}`)
}

interface Fields {
	config?: Record<string, unknown>
}

function withoutApprovals<T extends Fields>(payload: T): { approved: string[]; fields: T } {
	if (!payload.config) return { approved: [], fields: payload }
	const { approved_skills, ...rest } = payload.config
	return { approved: (approved_skills as string[] | null | undefined) ?? [], fields: { ...payload, config: rest } }
}

/** Warnings about the parts of this request that the gateway does not use. */
async function warningsAbout(
	{ toolbox }: Pick<Context, 'toolbox'>,
	agent: AgentRecord,
	{ config = {} }: Fields,
	renames: readonly FieldError[],
): Promise<{ warnings?: FieldError[] }> {
	const known = Object.keys(configKeys)
	const unknown = Object.keys(config).filter((key) => config[key] !== null && !known.includes(key))
	const warnings = [...renames, ...unknown.map((key) => ({ path: `config.${key}`, message: unusedKey(key, known) }))]
	if (config.tools) warnings.push(...unusedPatterns(config.tools, await toolbox.list(agent)))
	return warnings.length > 0 ? { warnings } : {}
}

function unusedKey(key: string, known: string[]): string {
	const meant = suggest(key, known)
	const choice = meant === undefined ? `the keys are: ${known.join(', ')}` : `did you mean "${meant}"?`
	return `is stored but not used by the gateway; ${choice}`
}

/** Only warnings, since a matching tool may be added later. */
function unusedPatterns(policy: ToolPolicy, tools: readonly ToolDefinition[]): FieldError[] {
	const names = tools.flatMap(namesOf)
	const message = 'matches no tool that the agent has now; `*` is the only special character, and case counts'
	return (['allow', 'deny', 'ask'] as const).flatMap((list) =>
		(policy[list] ?? []).flatMap((pattern, n) =>
			names.some((name) => matches(pattern, name)) ? [] : [{ path: `config.tools.${list}.${n}`, message }],
		),
	)
}

function view({ name, persona, config, created_at }: AgentRecord): Omit<AgentRecord, 'uid'> {
	return { name, persona, config, created_at }
}
