import { definePlugin } from '../../core/plugin.ts'
import type { ErrorCode } from '../../core/plugin.ts'
import events from './events.ts'
import { bindingsOf } from './bindings.ts'
import { channelsOf } from './channels.ts'
import { openConnections } from './connections.ts'
import type { ChannelCode, ChannelSettings, Channels } from './contract.ts'
import { directoryOf } from './directory.ts'
import { maintain } from './maintenance.ts'
import { pairingOf } from './pairing.ts'
import { openDialogue } from './dialogue.ts'
import type { Dialogue } from './parts.ts'
import { registryOf } from './registry.ts'
import { messageRoute } from './message-route.ts'
import { routes } from './routes.ts'

/** Channels: chat platforms on which people talk to agents. */
export default definePlugin<ChannelSettings, Channels>({
	name: 'channels',
	needs: ['auth', 'agents', 'runs', 'vault'],
	events,
	scopes: { 'channels:read': 'List channels', 'channels:write': 'Create and manage channels' },
	errors: {
		channel_unavailable: { status: 503, description: 'The channel is not connected to its platform.' },
		pairing_invalid: { status: 400, description: 'The pairing code is wrong, used or expired.' },
	} satisfies Record<ChannelCode, ErrorCode>,
	// Two connections with the same token would steal each other's messages.
	exclusive: true,
	start(ctx) {
		const directory = directoryOf(ctx.store)
		const bindings = bindingsOf(ctx)
		const pairing = pairingOf(ctx, directory, bindings)
		const connections = openConnections(ctx, directory, () => dialogue)
		const dialogue: Dialogue = openDialogue(ctx, registryOf(directory, connections, bindings, pairing))
		// Released before the dialogue, so that messages that have arrived are still handled.
		ctx.own(connections, 'connections to chat platforms')
		const parts = { directory, bindings, pairing, connections, dialogue }
		const channels = channelsOf(ctx, parts)
		maintain(ctx, channels, parts)

		ctx.onGeneration(() => void connections.reconcile())
		// Through events, since another generation may have created or changed the channel.
		ctx.on('channel.created', () => void connections.reconcile())
		ctx.on('channel.updated', () => void connections.reconcile())
		const names = (secret: { id: string; name: string }) => (one: { bot_token_ref: string }) =>
			one.bot_token_ref === secret.id || one.bot_token_ref === secret.name
		const stop = ctx.use('vault').onChanged((secret) => void connections.reconcile(names(secret)))
		ctx.defer(stop, 'secrets that change')
		ctx.extend('metrics', {
			metrics: { svc_channel_up: { help: 'Channels that are connected to their platform, by type.', type: 'gauge' } },
			async read() {
				const up = new Map<string, number>()
				for (const { type, connection } of await channels.connections())
					up.set(type, (up.get(type) ?? 0) + (connection === 'connected' ? 1 : 0))
				return { svc_channel_up: [...up].map(([type, value]) => ({ labels: { type }, value })) }
			},
		})
		return channels
	},
	http(server, ctx, channels) {
		routes(server, ctx, channels)
		messageRoute(server, ctx, channels)
	},
})
