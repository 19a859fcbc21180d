/**
 * A Matrix homeserver for tests, over HTTP. It implements the parts of the client-server API v3 that a client needs, with rooms,
 * invitations, long polling, gaps in a timeline, edits and transaction ids, and causes faults on demand. It outlives gateways.
 */
import { randomUUID } from 'node:crypto'
import { createServer } from 'node:http'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { listenOnLoopback } from './loopback.ts'

export interface Homeserver {
	url: string
	/** Returns the id of the user with this name, and creates it if necessary. All users have the password `its password`. */
	user(name: string, displayname?: string): string
	token(user_id: string): string
	/** Revokes the user's token. */
	revoke(user_id: string): void
	/** Creates a room with these members. */
	room(...user_ids: string[]): string
	invite(room_id: string, user_id: string, by: string): void
	leave(room_id: string, user_id: string): void
	isJoined(room_id: string, user_id: string): boolean
	/** Sends a message of a person: text, or a complete content. Returns the event's id. */
	say(room_id: string, sender: string, said: string | Content, type?: string): string
	/** Includes this event again in the next answers to `/sync`. */
	repeat(event_id: string): void
	/** This user's messages as people see them, with edits applied. */
	shown(room_id: string, sender: string): Shown[]
	/** How often typing was signalled in a room. */
	typed(room_id: string): number
	/** The files of `mxc://NAME/key`, by key. */
	media: Map<string, Uint8Array>
	/** Makes the next requests that match fail, `failure.times` of them. */
	fail(path: RegExp, failure: Failure): void
	/** Cuts all connections, including those with requests in progress. */
	cut(): void
	/** Requests in progress. */
	open(): number
	/** `METHOD path` of all requests so far. */
	requests: string[]
	close(): Promise<void>
}

export interface Failure {
	times?: number
	/** Default: the connection is cut. */
	status?: number
	body?: object
	headers?: Record<string, string>
	/** `after`: the request is executed, and only the answer is replaced. */
	when?: 'before' | 'after'
	/** No answer until the client disconnects. */
	hang?: boolean
}

// oxlint-disable-next-line typescript/no-explicit-any -- whatever a client sends
export type Content = Record<string, any>

export interface Shown {
	id: string
	text: string
	/** The formatted body, if any. */
	html: string | undefined
	msgtype: string
	edits: number
	reply_to: string | undefined
	thread_id: string | undefined
	mentions: unknown
	/** The address of a file. */
	url: string | undefined
}

interface Event {
	pos: number
	room_id: string
	event_id: string
	type: string
	sender: string
	content: Content
	state_key?: string
	unsigned?: Content
}

const NAME = 'matrix.test'

export async function startHomeserver(): Promise<Homeserver> {
	const tokens = new Map<string, string>()
	const names = new Map<string, string>()
	/** Room, user, membership. */
	const rooms = new Map<string, Map<string, string>>()
	const events: Event[] = []
	const repeated: Event[] = []
	const transactions = new Map<string, string>()
	const media = new Map<string, Uint8Array>()
	const typing = new Map<string, number>()
	const failures: { path: RegExp; failure: Failure; left: number }[] = []
	const requests: string[] = []
	const waiting = new Set<() => void>()
	let inProgress = 0

	function add(room_id: string, sender: string, type: string, content: Content, more: Partial<Event> = {}): string {
		const event_id = `$${randomUUID().replaceAll('-', '')}`
		events.push({ pos: events.length + 1, room_id, event_id, type, sender, content, ...more })
		for (const wake of waiting) wake()
		return event_id
	}

	function setMember(room_id: string, user_id: string, membership: string, by = user_id): void {
		const room = rooms.get(room_id) ?? new Map<string, string>()
		rooms.set(room_id, room)
		const before = room.get(user_id)
		room.set(user_id, membership)
		const unsigned = before === undefined ? {} : { prev_content: { membership: before } }
		add(room_id, by, 'm.room.member', { membership, displayname: names.get(user_id) }, { state_key: user_id, unsigned })
	}

	const isJoined = (room_id: string, user_id: string): boolean => rooms.get(room_id)?.get(user_id) === 'join'
	const roomsOf = (user_id: string, membership: string): string[] =>
		[...rooms].filter(([, members]) => members.get(user_id) === membership).map(([room_id]) => room_id)
	const lastChange = (room_id: string, user_id: string): number =>
		events.findLast((event) => event.room_id === room_id && event.state_key === user_id)?.pos ?? 0

	function syncAnswer(user_id: string, since: number, filter: Content): Content & { is_empty: boolean } {
		const { types, limit = 10 } = (filter.room?.timeline ?? {}) as { types?: string[]; limit?: number }
		const join: Content = {}
		for (const room_id of roomsOf(user_id, 'join')) {
			// A homeserver also includes earlier events of a room that is new to the user.
			const isNew = lastChange(room_id, user_id) > since
			const all = events.filter(
				(event) => event.room_id === room_id && (isNew || event.pos > since) && (types?.includes(event.type) ?? true),
			)
			const shown = all.slice(-limit)
			const again = repeated.filter((event) => event.room_id === room_id)
			if (shown.length + again.length === 0) continue
			join[room_id] = {
				timeline: {
					events: [...again, ...shown],
					limited: shown.length < all.length,
					prev_batch: `t${shown[0]?.pos ?? events.length}`,
				},
			}
		}
		const invited = roomsOf(user_id, 'invite').filter((room_id) => lastChange(room_id, user_id) > since)
		const invite = Object.fromEntries(invited.map((room_id) => [room_id, { invite_state: { events: [] } }]))
		const is_empty = Object.keys(join).length + invited.length === 0
		return { next_batch: `s${events.length}`, rooms: { join, invite }, is_empty }
	}

	async function sync(user_id: string, query: URLSearchParams, gone: AbortSignal): Promise<Content> {
		const since = Number((query.get('since') ?? 's0').slice(1))
		const filter = JSON.parse(query.get('filter') ?? '{}') as Content
		const until = Date.now() + Number(query.get('timeout') ?? 0)
		for (;;) {
			const { is_empty, ...answer } = syncAnswer(user_id, since, filter)
			if (!is_empty || gone.aborted || Date.now() >= until) {
				repeated.length = 0
				return answer
			}
			await new Promise<void>((resolve) => {
				const timer = setTimeout(done, until - Date.now())
				function done(): void {
					clearTimeout(timer)
					waiting.delete(done)
					gone.removeEventListener('abort', done)
					resolve()
				}
				waiting.add(done)
				gone.addEventListener('abort', done)
			})
		}
	}

	function messages(room_id: string, query: URLSearchParams): Content {
		const { types } = JSON.parse(query.get('filter') ?? '{}') as { types?: string[] }
		const from = Number((query.get('from') ?? 't0').slice(1))
		const to = Number((query.get('to') || 's0').slice(1))
		const all = events.filter((event) => event.room_id === room_id && event.pos < from && event.pos > to)
		const found = all.filter((event) => types?.includes(event.type) ?? true)
		const chunk = found.slice(-Math.min(Number(query.get('limit') ?? 10), 30)).toReversed()
		const first = chunk.at(-1)?.pos ?? 0
		return { chunk, start: query.get('from'), ...(found.length > chunk.length && { end: `t${first}` }) }
	}

	async function answer(request: Request): Promise<Answer> {
		const { user_id, method, path, query, body, gone } = request
		const [what, one = '', action, two = '', three = ''] = path
		const room = rooms.get(one)
		switch (`${method} ${what} ${action ?? ''}`.trimEnd()) {
			case 'GET account':
				return { body: { user_id } }
			case 'GET profile displayname':
				return names.has(one) ? { body: { displayname: names.get(one) } } : error(404, 'M_NOT_FOUND', 'no such profile')
			case 'GET sync':
				return { body: await sync(user_id, query, gone) }
			case 'POST join':
				if (room?.get(user_id) !== 'invite') return error(403, 'M_FORBIDDEN', 'You are not invited to this room.')
				setMember(one, user_id, 'join')
				return { body: { room_id: one } }
		}
		if (what === 'media') {
			if (method === 'POST' && one === 'upload') {
				const id = randomUUID()
				media.set(id, request.bytes)
				return { body: { content_uri: `mxc://${NAME}/${id}` } }
			}
			const bytes = method === 'GET' && one === 'download' && action === NAME ? media.get(two) : undefined
			return bytes ? { body: bytes } : error(404, 'M_NOT_FOUND', 'no such file')
		}
		if (what !== 'rooms' || !room) return error(404, 'M_UNRECOGNIZED', 'Unrecognized request')
		if (!isJoined(one, user_id)) return error(403, 'M_FORBIDDEN', `User ${user_id} not in room ${one}`)
		switch (`${method} ${action}`) {
			case 'PUT send': {
				if (three === '') break
				if (Buffer.byteLength(JSON.stringify(body)) > 65_000) return error(413, 'M_TOO_LARGE', 'event too large')
				const transaction = JSON.stringify([user_id, path])
				const event_id = transactions.get(transaction) ?? add(one, user_id, two, body)
				transactions.set(transaction, event_id)
				return { body: { event_id } }
			}
			case 'PUT typing':
				if (body.typing === true) typing.set(one, (typing.get(one) ?? 0) + 1)
				return { body: {} }
			case 'GET joined_members': {
				const joined = [...room].filter(([, membership]) => membership === 'join')
				return { body: { joined: Object.fromEntries(joined.map(([id]) => [id, { display_name: names.get(id) }])) } }
			}
			case 'GET messages':
				return { body: messages(one, query) }
			case 'GET event': {
				const event = events.find(({ event_id }) => event_id === two)
				return event ? { body: event } : error(404, 'M_NOT_FOUND', 'Event not found.')
			}
		}
		return error(404, 'M_UNRECOGNIZED', 'Unrecognized request')
	}

	function logIn({ identifier, password }: Content): Answer {
		const user_id = `@${identifier?.user}:${NAME}`
		const access_token = [...tokens].find(([, id]) => id === user_id)?.[0]
		if (access_token === undefined || password !== 'its password') return error(403, 'M_FORBIDDEN', 'Invalid password')
		return { body: { user_id, access_token, device_id: 'ADEVICE' } }
	}

	async function serve(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
		const { pathname, searchParams: query } = new URL(incoming.url ?? '', 'http://any')
		const path = pathname
			.replace(/^\/_matrix\/(?:client\/(?:v3|v1)\/|(?=media\/))/, '')
			.replace(/^media\/v3\//, 'media/')
			.split('/')
			.map(decodeURIComponent)
		const method = incoming.method ?? ''
		requests.push(`${method} ${path.join('/')}`)
		const bytes = Buffer.concat(await incoming.toArray())
		const text = path[0] === 'media' ? '' : bytes.toString()
		const gone = new AbortController()
		response.once('close', () => gone.abort())

		const fault = failures.find((one) => one.left > 0 && one.path.test(`${method} ${path.join('/')}`))
		if (fault) fault.left--
		const user_id = tokens.get((incoming.headers.authorization ?? '').replace(/^Bearer /, ''))
		const ask = (): Answer | Promise<Answer> =>
			method === 'POST' && path[0] === 'login'
				? logIn(JSON.parse(text))
				: user_id === undefined
					? error(401, 'M_UNKNOWN_TOKEN', 'Invalid access token passed.')
					: answer({
							user_id,
							method,
							path,
							query,
							body: text === '' ? {} : JSON.parse(text),
							bytes,
							gone: gone.signal,
						})
		const given = fault && fault.failure.when !== 'after' ? undefined : await ask()
		if (fault?.failure.hang) return
		if (fault && fault.failure.status === undefined) return void incoming.socket.destroy()
		const { status = 200, body = {}, headers = {} } = fault?.failure ?? given ?? {}
		response.writeHead(status, { 'content-type': 'application/json', ...headers })
		response.end(body instanceof Uint8Array ? body : JSON.stringify(body))
	}

	const server = createServer((incoming, response) => {
		inProgress++
		response.once('close', () => inProgress--)
		serve(incoming, response).catch(() => incoming.socket.destroy()) // such as a body that was cut
	})
	const { url, stop } = await listenOnLoopback(server)

	return {
		url,
		user(name, displayname) {
			const user_id = `@${name}:${NAME}`
			if (displayname !== undefined) names.set(user_id, displayname)
			if (![...tokens.values()].includes(user_id)) tokens.set(`syt_${randomUUID()}`, user_id)
			return user_id
		},
		token: (user_id) => [...tokens].find(([, id]) => id === user_id)?.[0] ?? '',
		revoke(user_id) {
			for (const [token, id] of tokens) if (id === user_id) tokens.delete(token)
		},
		room(...user_ids) {
			const room_id = `!${randomUUID().slice(0, 18)}:${NAME}`
			for (const user_id of user_ids) setMember(room_id, user_id, 'join')
			return room_id
		},
		invite: (room_id, user_id, by) => setMember(room_id, user_id, 'invite', by),
		leave: (room_id, user_id) => setMember(room_id, user_id, 'leave'),
		isJoined,
		say: (room_id, sender, said, type = 'm.room.message') =>
			add(room_id, sender, type, typeof said === 'string' ? { msgtype: 'm.text', body: said } : said),
		repeat(event_id) {
			repeated.push(...events.filter((event) => event.event_id === event_id))
			for (const wake of waiting) wake()
		},
		shown(room_id, sender) {
			const sent = events.filter((event) => event.room_id === room_id && event.sender === sender)
			const own = sent.filter(({ type }) => type === 'm.room.message')
			return own
				.filter(({ content }) => content['m.relates_to']?.rel_type !== 'm.replace')
				.map((event) => seen(event, own))
		},
		typed: (room_id) => typing.get(room_id) ?? 0,
		media,
		fail: (path, failure) => void failures.push({ path, failure, left: failure.times ?? 1 }),
		cut: () => server.closeAllConnections(),
		open: () => inProgress,
		requests,
		close: stop,
	}
}

interface Request {
	user_id: string
	method: string
	path: string[]
	query: URLSearchParams
	body: Content
	bytes: Buffer
	gone: AbortSignal
}

interface Answer {
	status?: number
	body?: object
	headers?: Record<string, string>
}

function error(status: number, errcode: string, message: string): Answer {
	return { status, body: { errcode, error: message } }
}

/** The message as an app shows it: with the newest valid replacement. */
function seen({ event_id, content }: Event, among: Event[]): Shown {
	const edits = among.filter(
		(one) =>
			one.content['m.relates_to']?.rel_type === 'm.replace' &&
			one.content['m.relates_to'].event_id === event_id &&
			one.content['m.new_content'] !== undefined,
	)
	const now: Content = edits.at(-1)?.content['m.new_content'] ?? content
	const relation: Content = content['m.relates_to'] ?? {}
	return {
		id: event_id,
		text: now.body,
		html: now.format === 'org.matrix.custom.html' ? now.formatted_body : undefined,
		msgtype: now.msgtype,
		edits: edits.length,
		reply_to: relation['m.in_reply_to']?.event_id,
		thread_id: relation.rel_type === 'm.thread' ? relation.event_id : undefined,
		mentions: now['m.mentions'],
		url: now.url,
	}
}
