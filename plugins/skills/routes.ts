import type { Server } from '@hapi/hapi'
import Joi from 'joi'
import { Fault, isFault } from '../../core/errors.ts'
import type { Context } from '../../core/plugin.ts'
import { scoped } from '../../core/http/routes.ts'
import type { AgentRecord } from '../agents/contract.ts'
import type { Credentials } from '../auth/contract.ts'
import type { Skills, SkillSettings } from './contract.ts'
import { DOCUMENT_LIMIT } from './document.ts'
import { download } from './download.ts'
import { exampleDigest, exampleOfSkill, exampleReview, exampleSkill } from './example.ts'

const text = Joi.string().allow('')
const iso = Joi.string().isoDate()
const skill = {
	id: Joi.string().required(),
	name: Joi.string().required(),
	description: Joi.string().required(),
	status: Joi.valid('active', 'quarantined')
		.required()
		.description(
			'`quarantined`: waits for its approval, and no run can use it; `active`: approved, runs have it as a tool.',
		),
	installed_at: iso.required(),
}
const names = Joi.array().items(Joi.string()).required()
const shown = Joi.object(skill).id('Skill').example(exampleOfSkill)
const review = Joi.object({
	...skill,
	digest: Joi.string()
		.hex()
		.length(64)
		.required()
		.description("sha256 of the document's bytes: what an approval names."),
	source: Joi.object({
		kind: Joi.valid('inline', 'url').required(),
		url: Joi.string(),
		resolved_url: Joi.string().description('Where redirects led.'),
	}).required(),
	size: Joi.number().integer().required().description('Bytes of the document.'),
	tool: Joi.string().required().description("The tool's name that a model sees."),
	approved_at: iso.allow(null).required(),
	approved_by: Joi.string()
		.allow(null)
		.required()
		.description('Id of the token that approved it; null for a local caller without one.'),
	runtime: Joi.valid('javascript', null).required().description('Null for instructions.'),
	parameters: Joi.array()
		.items(
			Joi.object({
				name: Joi.string().required(),
				type: Joi.valid('string', 'number', 'integer', 'boolean', 'array', 'object').required(),
				required: Joi.boolean().required(),
				description: text.required(),
				default: Joi.any(),
				enum: Joi.array(),
			}),
		)
		.required(),
	permissions: Joi.object({ primitives: names, hosts: names, secrets: names })
		.required()
		.description('What its program may use; everything else is denied.'),
	metadata: Joi.object().unknown().required().description('Other keys of its front matter, which the gateway ignores.'),
	warnings: names.description('Problems that do not prevent the installation.'),
	findings: Joi.array()
		.items(
			Joi.object({
				rule: Joi.string().required(),
				severity: Joi.valid('high', 'medium', 'low').required(),
				line: Joi.number().integer().required(),
				excerpt: text.required().description('With what is invisible written as \\u{…}.'),
				message: Joi.string().required(),
			}),
		)
		.required()
		.description('What to look at, worst first. A document without findings is not a safe one.'),
	replaces: Joi.string().allow(null).required().description('The active revision that an approval replaces.'),
	diff: text.allow(null).required().description('Unified, against that revision.'),
	program: text
		.allow(null)
		.required()
		.description('The program as it runs, apart from the text around it; null for instructions.'),
	program_line: Joi.number()
		.integer()
		.allow(null)
		.required()
		.description("The document's line on which the program begins; 1 is the first."),
	markdown: Joi.string().required(),
})
	.id('SkillReview')
	.example(exampleReview)

const ofAgent = { id: Joi.string().max(64).required().description('Name of the agent.').example('ada') }
const ofSkill = {
	...ofAgent,
	skill_id: Joi.string().max(64).required().description('Id of the skill.').example(exampleOfSkill.id),
}

export function routes(server: Server, ctx: Context<SkillSettings>, skills: Skills): void {
	const agentOf = (name: string): Promise<AgentRecord> => ctx.use('agents').get(name)

	server.route<{ Params: { id: string } }>({
		method: 'GET',
		path: '/v1/agents/{id}/skills',
		options: {
			id: 'listSkills',
			description: 'List the skills of an agent, oldest first',
			tags: ['api', 'skills'],
			auth: scoped('agents:read'),
			validate: { params: Joi.object(ofAgent) },
			response: { status: { 200: Joi.array().items(shown) } },
		},
		handler: async (request) => skills.list(await agentOf(request.params.id)),
	})
	server.route<{ Params: { id: string }; Payload: { url?: string; content?: string } }>({
		method: 'POST',
		path: '/v1/agents/{id}/skills/install',
		options: {
			id: 'installSkill',
			description: 'Install a skill into quarantine',
			notes:
				'A skill is Markdown after a YAML front matter with `name`, `description` and `parameters`. It does nothing until it is approved. If the agent already has a skill of this name, this is a new revision of it, and the active one stays until the new one is approved.',
			tags: ['api', 'skills'],
			auth: scoped('agents:write'),
			plugins: { openapi: { errors: [409] } },
			validate: {
				params: Joi.object(ofAgent),
				payload: Joi.object({
					url: Joi.string()
						.max(2048)
						.description(
							'The address of the file: http or https, at most 256 KiB of text/markdown or text/plain, or of application/octet-stream if its path ends in .md.',
						)
						.example('https://skills.example.com/weather/SKILL.md'),
					content: Joi.string().max(DOCUMENT_LIMIT, 'utf8').description('The file itself.'),
				})
					.xor('url', 'content')
					.messages({
						'object.missing': 'the body must have url or content',
						'object.xor': 'the body must have url or content, not both',
					})
					.required()
					.prefs({ convert: false })
					.example({ content: exampleSkill }),
			},
			response: { status: { 201: shown } },
		},
		handler: async (request, h) => {
			const agent = await agentOf(request.params.id)
			const { url, content } = request.payload
			if (content !== undefined) return h.response(await skills.install(agent, content, { kind: 'inline' })).code(201)
			const { markdown, source } = await fetched(ctx, agent, url ?? '', request.auth.credentials)
			return h.response(await skills.install(agent, markdown, source)).code(201)
		},
	})
	server.route<{ Params: { id: string; skill_id: string } }>({
		method: 'GET',
		path: '/v1/agents/{id}/skills/{skill_id}',
		options: {
			id: 'reviewSkill',
			description: 'Review a skill',
			notes:
				'The document, its digest, its program, what the program may use, the findings of a scan, and the changes against the active revision.',
			tags: ['api', 'skills'],
			auth: scoped('agents:read'),
			validate: { params: Joi.object(ofSkill) },
			response: { status: { 200: review } },
		},
		handler: async (request) => skills.review(await agentOf(request.params.id), request.params.skill_id),
	})
	server.route<{ Params: { id: string; skill_id: string }; Payload: { digest: string } }>({
		method: 'POST',
		path: '/v1/agents/{id}/skills/{skill_id}/approve',
		options: {
			id: 'approveSkill',
			description: 'Approve a skill as it was reviewed',
			notes:
				'From now on the agent has it during runs, in place of the active revision of its name. 409 if the document is not the one that `digest` names. `PATCH /v1/agents/{name}` with `config.approved_skills` approves too. A program that declares secrets requires the scope `vault:write` or `*` in addition to this one.',
			tags: ['api', 'skills'],
			auth: scoped('agents:write'),
			plugins: { openapi: { errors: [409] } },
			validate: {
				params: Joi.object(ofSkill),
				payload: Joi.object({
					digest: Joi.string()
						.pattern(/^[0-9a-f]{64}$/)
						.message('{#label} must be the 64 hex digits that the review shows')
						.required()
						.description('The digest that the review showed.')
						.example(exampleDigest),
				})
					.required()
					.prefs({ convert: false }),
			},
			response: { status: { 200: shown } },
		},
		handler: async (request) => {
			const { id, skill_id } = request.params
			return skills.approveReviewed(await agentOf(id), skill_id, request.payload.digest, request.auth.credentials)
		},
	})
	server.route<{ Params: { id: string; skill_id: string } }>({
		method: 'DELETE',
		path: '/v1/agents/{id}/skills/{skill_id}',
		options: {
			id: 'removeSkill',
			description: 'Remove a skill',
			notes: 'Running calls of it end with an error.',
			tags: ['api', 'skills'],
			auth: scoped('agents:write'),
			validate: { params: Joi.object(ofSkill) },
			response: { emptyStatusCode: 204 },
		},
		handler: async (request, h) => {
			await skills.remove(await agentOf(request.params.id), request.params.skill_id)
			return h.response().code(204)
		},
	})
}

async function fetched(
	ctx: Context<SkillSettings>,
	agent: AgentRecord,
	url: string,
	{ scope }: Credentials,
): ReturnType<typeof download> {
	try {
		return await download(url, scope.includes('*') || ctx.config.allow_private_urls)
	} catch (error) {
		if (!isFault(error, 'address_refused', 'invalid_request')) throw error
		const fault = new Fault(error.code, error.message, {
			errors: error.errors ?? [{ path: 'url', message: error.message }],
			cause: error,
		})
		if (isFault(error, 'address_refused')) {
			const payload = { reason: 'address_refused', what: URL.parse(url)?.host ?? '', message: error.message }
			await ctx.emit({ event_type: 'security.violation', payload }, agent.name)
		}
		throw fault
	}
}
