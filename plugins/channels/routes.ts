import type { Server } from '@hapi/hapi'
import { Joi } from '../../core/util/lazy-joi.ts'
import { isFault } from '../../core/errors.ts'
import type { Context } from '../../core/plugin.ts'
import { scoped } from '../shared/scopes.ts'
import type { Answerers, Binding, Channels, ChannelSettings } from './contract.ts'
import { pairingRequest, tokenRef } from './requests.ts'
import type { ChannelRequest, PairingRequest } from './requests.ts'
import {
	binding,
	bindingChange,
	bindingParams,
	bindings,
	channel,
	channelChange,
	channelDetails,
	deletedBinding,
	deletedChannel,
	newChannel,
	paired,
	pairing,
	params,
	waiting,
} from './schemas.ts'

interface BindingParams {
	id: string
	binding_id: string
}

const tags = ['api', 'channels']
const accessNotes =
	'A caller without the scope `*` may name only secrets with the `policy_label` `channel`, and `config.api_root` only at hosts of `channels.allowed_api_roots` in gateway.yaml. Of the other keys of `config` it may set only `agent_id`, `answer`, `allowed_senders`, `progress` and `during_run`, and those that the plugin of the channel declares as `unguarded`.'

export function routes(server: Server, ctx: Context<ChannelSettings>, channels: Channels): void {
	server.route<{ Payload: ChannelRequest & { type: string } }>({
		method: 'POST',
		path: '/v1/channels',
		options: {
			id: 'createChannel',
			description: 'Add a channel',
			notes: [
				'Connects automatically; GET /v1/channels/{id} shows the state. The token may also be named by `config.bot_token_secret_ref`.',
				accessNotes,
			],
			tags,
			auth: scoped('channels:write'),
			plugins: { openapi: { errors: [409] } },
			validate: { payload: newChannel },
			response: { status: { 201: channel } },
		},
		handler: async (request, h) => {
			const { type } = request.payload
			const { bot_token_ref, config = {} } = tokenRef(request.payload)
			const { credentials } = request.auth
			const made = channels.create({ type, bot_token_ref, config }, credentials)
			return h.response(await orReport(ctx, made, { type, secret: bot_token_ref })).code(201)
		},
	})
	server.route({
		method: 'GET',
		path: '/v1/channels',
		options: {
			id: 'listChannels',
			description: 'List channels, oldest first',
			tags,
			auth: scoped('channels:read'),
			response: { status: { 200: Joi.object({ channels: Joi.array().items(channel).required() }) } },
		},
		handler: async () => ({ channels: await channels.list() }),
	})
	server.route({
		method: 'GET',
		path: '/v1/channels/waiting',
		options: {
			id: 'listWaitingChats',
			description: 'List chats that wait to be paired, newest first',
			notes:
				'Chats with a code from the bot that is still valid; at most 200. POST /v1/channels/pair binds one by its `channel_id` and `external_chat_id`. Anyone can write to a bot, so make sure that you know who it is.',
			tags,
			auth: scoped('channels:read'),
			response: { status: { 200: waiting } },
		},
		handler: async () => ({ chats: await channels.waiting() }),
	})
	server.route<{ Payload: PairingRequest }>({
		method: 'POST',
		path: '/v1/channels/pair',
		options: {
			id: 'pairChat',
			description: 'Bind a chat to an agent',
			notes: [
				'Either with the `pairing_code` that the bot gave to the chat, or with `agent_id`, `channel_id` and `external_chat_id`.',
				'A code belongs to its chat, can be used once, and is valid for 10 minutes. It binds the agent of `agent_id`, else that of `config.agent_id` of the channel, else the only agent of the gateway.',
				'After 5 wrong codes in a minute a caller has to wait, even with the right code.',
			],
			tags,
			auth: scoped('channels:write'),
			plugins: { openapi: { errors: [404, 409] } },
			validate: { payload: pairing },
			response: { status: { 201: paired } },
		},
		handler: async (request, h) => {
			const wanted = pairingRequest(request.payload)
			const binding =
				'pairing_code' in wanted
					? await channels.pair(wanted.pairing_code, wanted.agent_id, request.auth.credentials, wanted.who_may_answer)
					: await channels.bind({ ...wanted, agent: await ctx.use('agents').get(wanted.agent_id) })
			return h.response(pairingOf(binding)).code(201)
		},
	})
	server.route<{ Params: BindingParams }>({
		method: 'GET',
		path: '/v1/channels/{id}',
		options: {
			id: 'getChannel',
			description: 'Read a channel with its connection and its bindings',
			notes: '`connection` and `last_error` describe its current state.',
			tags,
			auth: scoped('channels:read'),
			validate: { params },
			response: { status: { 200: channelDetails } },
		},
		handler: (request) => channels.get(request.params.id),
	})
	server.route<{ Params: BindingParams; Payload: ChannelRequest }>({
		method: 'PATCH',
		path: '/v1/channels/{id}',
		options: {
			id: 'updateChannel',
			description: 'Change a channel',
			notes: ['Reconnects if something changed or if `connection` is `error`.', accessNotes],
			tags,
			auth: scoped('channels:write'),
			plugins: { openapi: { errors: [409] } },
			validate: { params, payload: channelChange },
			response: { status: { 200: channelDetails } },
		},
		handler: (request) => {
			const change = tokenRef(request.payload)
			const changed = channels.change(request.params.id, change, request.auth.credentials)
			return orReport(ctx, changed, { channel_id: request.params.id, secret: change.bot_token_ref })
		},
	})
	server.route<{ Params: BindingParams }>({
		method: 'DELETE',
		path: '/v1/channels/{id}',
		options: {
			id: 'deleteChannel',
			description: 'Delete a channel',
			notes: 'Also deletes its bindings and codes. Responds once its connection is closed.',
			tags,
			auth: scoped('channels:write'),
			validate: { params },
			response: { status: { 200: deletedChannel } },
		},
		handler: async (request) => {
			await channels.remove(request.params.id)
			return { id: request.params.id, status: 'deleted' }
		},
	})
	server.route<{ Params: BindingParams }>({
		method: 'GET',
		path: '/v1/channels/{id}/bindings',
		options: {
			id: 'listBindings',
			description: 'List the bound chats of a channel, oldest first',
			tags,
			auth: scoped('channels:read'),
			validate: { params },
			response: { status: { 200: Joi.object({ bindings }) } },
		},
		handler: async (request) => ({ bindings: await channels.bindings(request.params.id) }),
	})
	server.route<{ Params: BindingParams; Payload: Answerers }>({
		method: 'PATCH',
		path: '/v1/channels/{id}/bindings/{binding_id}',
		options: {
			id: 'updateBinding',
			description: 'Change who may answer questions and approvals in a bound chat',
			notes: 'This setting does not affect callers of the API with `runs:write`, who may always answer.',
			tags,
			auth: scoped('channels:write'),
			validate: { params: bindingParams, payload: bindingChange },
			response: { status: { 200: binding } },
		},
		handler: (request) => channels.changeBinding(request.params.id, request.params.binding_id, request.payload),
	})
	server.route<{ Params: BindingParams }>({
		method: 'DELETE',
		path: '/v1/channels/{id}/bindings/{binding_id}',
		options: {
			id: 'deleteBinding',
			description: 'Unbind a chat from its agent',
			notes: 'Runs that the chat started continue.',
			tags,
			auth: scoped('channels:write'),
			validate: { params: bindingParams },
			response: { status: { 200: deletedBinding } },
		},
		handler: async (request) => {
			const { id, binding_id } = request.params
			await channels.unbind(id, binding_id)
			return { binding_id, status: 'deleted' }
		},
	})
}

function pairingOf({ binding_id, agent_id, channel_id, external_chat_id }: Binding): Partial<Binding> {
	return { binding_id, agent_id, channel_id, external_chat_id }
}

async function orReport<T>(
	ctx: Context<ChannelSettings>,
	work: Promise<T>,
	about: Record<string, unknown>,
): Promise<T> {
	try {
		return await work
	} catch (error) {
		if (isFault(error, 'forbidden')) {
			const payload = { reason: 'channel_refused', message: error.message, ...about }
			await ctx.emit({ event_type: 'security.violation', payload })
		}
		throw error
	}
}
