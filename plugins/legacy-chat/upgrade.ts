/** Handles an HTTP upgrade: opens a WebSocket, or sends an error response. */
import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import { Fault, isFault, shownFault } from '../../core/errors.ts'
import { toBoom } from '../../core/http/boom.ts'
import { answerSocket, safetyHeaders } from '../../core/http/raw-answer.ts'
import { once } from '../shared/once.ts'
import { tryLater } from '../shared/try-later.ts'
import type { Context, UpgradeHandler } from '../../core/plugin.ts'
import type { OpenRequests } from '../auth/contract.ts'
import type { ChatSettings } from './contract.ts'
import { errorBody } from './errors.ts'
import type { ChatSocket } from './socket.ts'

/** Limit of a frame, including its fragments; a larger one closes the socket with 1009. Messages have a separate limit. */
const PAYLOAD_LIMIT_BYTES = 1024 * 1024
const FRAGMENT_LIMIT = 1024

const RETRY_AFTER_S = 5

export const RESTARTING = 'the chat API is being restarted; runs continue, and the conversation shows answers'

const path = /^\/api\/agents\/([^/?#]+)\/chat\/ws\/?(?:\?.*)?$/

export function upgrades(ctx: Context<ChatSettings>, sockets: OpenRequests<ChatSocket>): UpgradeHandler {
	const load = once(loadServer)

	const take = async (request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> => {
		const name = nameIn(request.url ?? '')
		const auth = ctx.use('auth')
		const credentials = await auth.authenticate(request, { scopes: ['runs:write'] }, name)
		const agent = await ctx.use('agents').visibleTo(credentials).get(name)
		const { wss, ChatSocket } = await load()
		if (ctx.signal.aborted) throw tryLater('unavailable', RESTARTING, RETRY_AFTER_S)
		sockets.mustHaveRoom(credentials)
		if (socket.destroyed) return
		wss.handleUpgrade(request, socket, head, (opened) => {
			const chat = new ChatSocket(ctx, opened, { agent, credentials, closed: () => sockets.leave(chat) })
			sockets.enter(chat)
		})
	}
	return (request, socket, head) => {
		take(request, socket, head).catch((error: unknown) => {
			if (!isFault(error)) ctx.log.error({ err: error }, 'a WebSocket could not be opened')
			refuse(socket, shownFault(error))
		})
	}
}

/** Loaded with the first WebSocket, so that an idle gateway does not load it. */
// oxlint-disable-next-line typescript/explicit-function-return-type -- names a class of a module that is not loaded yet
async function loadServer() {
	const [{ WebSocketServer }, { ChatSocket }] = await Promise.all([import('ws'), import('./socket.ts')])
	const wss = new WebSocketServer({
		noServer: true,
		clientTracking: false,
		perMessageDeflate: false,
		maxPayload: PAYLOAD_LIMIT_BYTES,
		maxFragments: FRAGMENT_LIMIT,
		// Handles one frame per turn of the event loop, however many have arrived.
		allowSynchronousEvents: false,
	})
	wss.on('headers', (lines) => {
		for (const [header, value] of Object.entries(safetyHeaders)) lines.push(`${header}: ${value}`)
	})
	wss.on('wsClientError', (error, socket) => refuse(socket, new Fault('invalid_request', error.message)))
	return { wss, ChatSocket }
}

function nameIn(url: string): string {
	const name = path.exec(url)?.[1]
	if (name === undefined)
		throw new Fault('not_found', 'this path accepts no upgrade; the WebSocket is at /api/agents/:name/chat/ws')
	try {
		return decodeURIComponent(name)
	} catch {
		throw new Fault('invalid_request', 'the name in the path is not well encoded')
	}
}

function refuse(socket: Duplex, fault: Fault): void {
	const { statusCode, headers } = toBoom(fault).output
	answerSocket(socket, statusCode, errorBody(fault.message), headers)
}
