import type { Server } from '@hapi/hapi'
import { Joi } from '../../core/util/lazy-joi.ts'
import { Fault, isFault } from '../../core/errors.ts'
import type { Context } from '../../core/plugin.ts'
import { agentName } from '../shared/agent-name.ts'
import { scoped } from '../shared/scopes.ts'
import type { AgentRecord } from '../agents/contract.ts'
import type { Credentials } from '../auth/contract.ts'
import type { Skills, SkillSettings } from './contract.ts'
import { unpack } from './folder/unpack.ts'
import { download } from './download.ts'
import { exampleDigest, exampleFile, exampleOfSkill, exampleReview } from './example.ts'
import { ARCHIVE_BODY, bodySchema, folderFrom, installBody } from './install-body.ts'
import type { InstallBody } from './install-body.ts'

const text = Joi.string().allow('')
const iso = Joi.string().isoDate()
const skill = {
	id: Joi.string().required(),
	name: Joi.string().required(),
	description: Joi.string().required(),
	status: Joi.valid('active', 'quarantined')
		.required()
		.description(
			'`quarantined`: no run can use it until it is approved; `active`: approved, and runs have it as a tool.',
		),
	installed_at: iso.required(),
}
const file = {
	path: Joi.string().required(),
	size: Joi.number().integer().required().description('Bytes.'),
	sha256: Joi.string().hex().length(64).required(),
	kind: Joi.valid('document', 'text', 'script', 'binary')
		.required()
		.description('A `script` does not run here: a model can only read it.'),
	language: Joi.string().description('Of a script.'),
}
const names = Joi.array().items(Joi.string()).required()
const shown = Joi.object(skill).id('Skill').example(exampleOfSkill)
const review = Joi.object({
	...skill,
	digest: Joi.string()
		.hex()
		.length(64)
		.required()
		.description(
			'The digest that an approval refers to: SHA-256 of the document; or, if there are other files, of a list with one line `<SHA-256>  <path>` per file, sorted by path, as `sha256sum` prints it.',
		),
	source: Joi.object({
		kind: Joi.valid('inline', 'archive', 'url').required(),
		url: Joi.string(),
		resolved_url: Joi.string().description('The final address after redirects.'),
	}).required(),
	size: Joi.number().integer().required().description('Bytes of all files.'),
	files: Joi.array()
		.items(Joi.object({ ...file, change: Joi.valid('added', 'changed', 'same', null).required() }))
		.required()
		.description('All files; `change` is against the active revision.'),
	removed_files: names.description('Files of the active revision that this one does not have.'),
	left_out: Joi.array()
		.items(Joi.object({ path: Joi.string().required(), why: Joi.valid('link', 'special').required() }))
		.required()
		.description('Links and special files of the archive, which are not installed.'),
	tool: Joi.string().required().description('The name of the tool for a model.'),
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
		.description('The permissions that its program declares; everything else is denied.'),
	metadata: Joi.object().unknown().required().description('Other keys of its front matter, which the gateway ignores.'),
	warnings: names.description('Problems that do not prevent the installation.'),
	findings: Joi.array()
		.items(
			Joi.object({
				file: Joi.string().required(),
				rule: Joi.string().required(),
				severity: Joi.valid('high', 'medium', 'low').required(),
				line: Joi.number().integer().required(),
				excerpt: text.required().description('Invisible characters are written as \\u{…}.'),
				message: Joi.string().required(),
			}),
		)
		.required()
		.description(
			'Findings of a scan to check, worst first; at most 500. A scan without findings does not mean that the skill is safe.',
		),
	replaces: Joi.string().allow(null).required().description('The active revision that an approval replaces.'),
	diff: text.allow(null).required().description('A unified diff of all text files against that revision.'),
	program: text
		.allow(null)
		.required()
		.description('The exact program, without the text around it; null for instructions.'),
	program_line: Joi.number()
		.integer()
		.allow(null)
		.required()
		.description("The document's line on which the program begins, from 1."),
	markdown: Joi.string().required(),
})
	.id('SkillReview')
	.example(exampleReview)

const ofAgent = { id: agentName }
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
	server.route<{ Params: { id: string }; Query: { path?: string }; Payload: InstallBody | Buffer }>({
		method: 'POST',
		path: '/v1/agents/{id}/skills/install',
		options: {
			id: 'installSkill',
			description: 'Install a skill into quarantine',
			notes:
				'A skill is a folder with a `SKILL.md`: Markdown after a YAML front matter with `name`, `description` and `parameters`. Send the document as `content`, a folder as `files`, an address as `url`, or the bytes of a `.zip` or `.tar.gz` as the body, with `Content-Type: application/zip` or `application/gzip`. At most 200 files and 8 MiB. It does nothing until it is approved. If the agent already has a skill of this name, this is a new revision of it, and the active one stays until the new one is approved.',
			tags: ['api', 'skills'],
			auth: scoped('agents:write'),
			plugins: { openapi: { errors: [409, 502, 503], body: bodySchema } },
			ext: { onPreAuth: { method: ARCHIVE_BODY.accept } },
			payload: ARCHIVE_BODY.payload,
			validate: {
				params: Joi.object(ofAgent),
				query: Joi.object({
					path: Joi.string().max(1000).description("The skill's folder in the archive that is the body."),
				}),
				payload: installBody,
			},
			response: { status: { 201: shown } },
		},
		handler: async (request, h) => {
			const agent = await agentOf(request.params.id)
			const { payload, query } = request
			if (Buffer.isBuffer(payload))
				return h.response(await skills.install(agent, await unpack(payload, query.path), { kind: 'archive' })).code(201)
			const { url, path } = payload
			if (url === undefined)
				return h.response(await skills.install(agent, folderFrom(payload), { kind: 'inline' })).code(201)
			const { folder, source } = await downloadFor(ctx, agent, { url, path }, request.auth.credentials)
			return h.response(await skills.install(agent, folder, source)).code(201)
		},
	})
	server.route<{ Params: { id: string; skill_id: string } }>({
		method: 'GET',
		path: '/v1/agents/{id}/skills/{skill_id}',
		options: {
			id: 'reviewSkill',
			description: 'Review a skill',
			notes:
				'The document, the list of files, their digest, the program, its permissions, the findings of a scan, warnings, and the changes against the active revision.',
			tags: ['api', 'skills'],
			auth: scoped('agents:read'),
			validate: { params: Joi.object(ofSkill) },
			response: { status: { 200: review } },
		},
		handler: async (request) => skills.review(await agentOf(request.params.id), request.params.skill_id),
	})
	server.route<{ Params: { id: string; skill_id: string }; Query: { path: string } }>({
		method: 'GET',
		path: '/v1/agents/{id}/skills/{skill_id}/files',
		options: {
			id: 'readSkillFile',
			description: 'Read a file of a skill, for its review',
			notes: 'Returns `text`, or `base64` if the file is not UTF-8 text.',
			tags: ['api', 'skills'],
			auth: scoped('agents:read'),
			validate: {
				params: Joi.object(ofSkill),
				query: Joi.object({
					path: Joi.string().max(1000).required().description('Its path, as the review lists it.').example('SKILL.md'),
				}),
			},
			response: {
				status: {
					200: Joi.object({ ...file, text, base64: text })
						.id('SkillFile')
						.example(exampleFile),
				},
			},
		},
		handler: async (request) => {
			const { id, skill_id } = request.params
			return skills.file(await agentOf(id), skill_id, request.query.path)
		},
	})
	server.route<{ Params: { id: string; skill_id: string }; Payload: { digest: string } }>({
		method: 'POST',
		path: '/v1/agents/{id}/skills/{skill_id}/approve',
		options: {
			id: 'approveSkill',
			description: 'Approve a skill as it was reviewed',
			notes:
				'The agent can use it in runs from now on, instead of the active revision of its name. 409 if the files do not have this `digest`. `PATCH /v1/agents/{name}` with `config.approved_skills` approves too. A program that declares secrets requires the scope `vault:write` or `*` in addition to this one.',
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
			notes: 'Its calls in progress end with an error.',
			tags: ['api', 'skills'],
			auth: scoped('agents:write'),
			validate: { params: Joi.object(ofSkill) },
		},
		handler: async (request, h) => {
			await skills.remove(await agentOf(request.params.id), request.params.skill_id)
			return h.response().code(204)
		},
	})
}

async function downloadFor(
	ctx: Context<SkillSettings>,
	agent: AgentRecord,
	{ url, path }: { url: string; path: string | undefined },
	{ scope }: Credentials,
): ReturnType<typeof download> {
	try {
		const allowPrivate = scope.includes('*') || ctx.config.allow_private_urls
		return await download({ url, path, allowPrivate, owner: agent.uid })
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
