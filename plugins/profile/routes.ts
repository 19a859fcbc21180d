import type { Server } from '@hapi/hapi'
import { Joi } from '../../core/util/lazy-joi.ts'
import type { AgentRef, Context } from '../../core/plugin.ts'
import { agentName } from '../shared/agent-name.ts'
import { scoped } from '../shared/scopes.ts'
import type {} from '../agents/contract.ts'
import { content, version } from './primitives.ts'
import { changed } from './profiles.ts'
import type { OwnProfiles } from './profiles.ts'

const iso = Joi.string().isoDate()
const text = Joi.string().allow('').required().example('Ada keeps the books of Grace Bell.')
const number = version.required().description('Every change adds 1; 0 if it was never written.').example(3)
const profile = Joi.object({
	content: text,
	version: number,
	updated_at: iso.allow(null).required().description('Null if it was never written.'),
}).id('Profile')
const params = Joi.object({ name: agentName })

interface Params {
	name: string
}

export function routes(server: Server, ctx: Context, profiles: OwnProfiles): void {
	const agentOf = (agent: string): Promise<AgentRef> => ctx.use('agents').get(agent)

	server.route<{ Params: Params }>({
		method: 'GET',
		path: '/v1/agents/{name}/profile',
		options: {
			id: 'getProfile',
			description: 'Read the profile',
			notes: 'What the agent knows about itself and its people; in every prompt.',
			tags: ['api', 'memory'],
			auth: scoped('agents:read'),
			validate: { params },
			response: { status: { 200: profile } },
		},
		handler: async ({ params: { name: agent } }) => profiles.read(await agentOf(agent)),
	})
	server.route<{ Params: Params; Payload: { content: string; expected_version?: number } }>({
		method: 'PUT',
		path: '/v1/agents/{name}/profile',
		options: {
			id: 'setProfile',
			description: 'Replace the profile',
			notes: 'The previous text is kept as an earlier version; at most 20 are kept.',
			tags: ['api', 'memory'],
			auth: scoped('agents:write'),
			validate: {
				params,
				payload: Joi.object({
					content: content.required(),
					expected_version: version.description(
						'The version that you read: 409 if the profile was changed since. Absent: the profile is replaced in any case.',
					),
				})
					.required()
					.prefs({ convert: false })
					.example({ content: 'Ada keeps the books of Grace Bell, who prefers short answers.' }),
			},
			response: { status: { 200: profile } },
			plugins: { openapi: { errors: [409] } },
		},
		handler: async ({ params: { name: agent }, payload }) => {
			const { content: text, expected_version } = payload
			const { profile: written, isChanged } = await profiles.replace(await agentOf(agent), text, expected_version)
			if (isChanged) await ctx.emit(changed(written, false), agent)
			return written
		},
	})
	server.route<{ Params: Params }>({
		method: 'GET',
		path: '/v1/agents/{name}/profile/versions',
		options: {
			id: 'listProfileVersions',
			description: 'List earlier versions of the profile, newest first',
			tags: ['api', 'memory'],
			auth: scoped('agents:read'),
			validate: { params },
			response: { status: { 200: Joi.array().items(profile).max(20) } },
		},
		handler: async ({ params: { name: agent } }) => profiles.versions(await agentOf(agent)),
	})
	server.route<{ Params: Params }>({
		method: 'POST',
		path: '/v1/agents/{name}/profile/undo',
		options: {
			id: 'undoProfile',
			description: 'Restore the previous version of the profile',
			notes: 'Each call goes one version further back, as a new version.',
			tags: ['api', 'memory'],
			auth: scoped('agents:write'),
			validate: { params },
			response: { status: { 200: profile } },
			plugins: { openapi: { errors: [409] } },
		},
		handler: async ({ params: { name: agent } }) => {
			const restored = await profiles.undo(await agentOf(agent))
			await ctx.emit(changed(restored, true), agent)
			return restored
		},
	})
}
