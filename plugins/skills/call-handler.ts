/**
 * Handles the calls of a skill's program to the gateway (`svc`). Everything is checked here, on the main thread, against the
 * approved declaration and the agent's grants, since the program's process is not trusted.
 */
import { Fault, isFault } from '../../core/errors.ts'
import type { guardedFetch } from '../../core/fetch/guarded-fetch.ts'
import type { Context, ToolCall } from '../../core/plugin.ts'
import type {} from '../runs/contract.ts'
import { isObject } from '../../core/util/is-object.ts'
import type { Outlet, SecretReading } from '../vault/contract.ts'
import type { Permissions } from './contract.ts'
import type { ProgramCall } from './hosts.ts'

export interface SkillGrant {
	skill: string
	skill_id: string
	permissions: Permissions
	call: ToolCall
}

/** Limit of the body of a request, and of a response. */
const BODY_LIMIT = 1024 * 1024
const URL_LIMIT = 8 * 1024
const FETCH_MS = 30_000
/** Limit of events about denied calls in one call of the skill. */
const VIOLATIONS_LIMIT = 20

/** Loads the HTTP client with the first request: it is large, and rarely needed. */
const lazyFetch: typeof guardedFetch = async (...args) =>
	(await import('../../core/fetch/guarded-fetch.ts')).guardedFetch(...args)

/** `send`: the HTTP client; tests replace it to reach their own server. */
export function callHandler(
	ctx: Pick<Context, 'find' | 'use'>,
	{ skill, skill_id, permissions, call }: SkillGrant,
	send: typeof guardedFetch = lazyFetch,
): ProgramCall['called'] {
	const reading: SecretReading = { agent: call.agent, via: `skill:${skill}`, emit: call.emit }

	const reported = new Set<string>()
	const violation = (reason: string, what: string, message: string): void => {
		const key = `${reason} ${what}`
		if (reported.has(key) || reported.size >= VIOLATIONS_LIMIT) return
		reported.add(key)
		call.emit({ event_type: 'security.violation', payload: { reason, skill, skill_id, what, message } })
	}

	const demand = (kind: keyof Permissions, name: string, isDeclared = permissions[kind].includes(name)): void => {
		if (isDeclared) return
		const shown = name.slice(0, 256)
		const message = `the skill does not declare ${JSON.stringify(shown)} under permissions.${kind}`
		violation('undeclared', `${kind}: ${shown}`, message)
		throw new Fault('permission_denied', message)
	}

	const primitive = async (name: string, args: unknown): Promise<unknown> => {
		demand('primitives', name)
		// The result is the value itself if the grant reveals it, so the secret must be declared.
		if (name === 'vault.read' && isObject(args) && typeof args.name === 'string') demand('secrets', args.name)
		return ctx.use('runs').callPrimitive(call, name, args)
	}

	const secret = async (name: string): Promise<string> => {
		demand('secrets', name)
		return (await ctx.use('vault').read(name, reading)).value
	}

	/** Fills in handles in data to send, so that the program does not need the values. */
	const fill = async <T>(data: T, outlet: Outlet): Promise<T> => {
		const vault = ctx.find('vault')
		for (const name of vault?.named(data) ?? []) demand('secrets', name)
		return vault ? vault.fill(data, { ...reading, outlet }) : data
	}

	const fetch = async (text: string, init: unknown, signal: AbortSignal): Promise<unknown> => {
		const url = URL.parse(text)
		if (!url || text.length > URL_LIMIT)
			throw new Fault('invalid_request', `svc.fetch needs a complete address of at most ${URL_LIMIT} characters`)
		demand('hosts', url.host, permissions.hosts.includes(url.host) || permissions.hosts.includes(url.hostname))
		const { method, headers, body } = requestOf(init)

		// Handles in the host or path are not filled in, so that the destination of a request stays visible.
		const query = [...url.searchParams]
		const valuesOf = (pairs: Pair[]): string[] => pairs.map(([, value]) => value)
		const given = { headers: valuesOf(headers), query: valuesOf(query), body }
		const bound: (readonly string[])[] = []
		const filled = await fill(given, { url, keepTo: (hosts) => void bound.push(hosts) })
		const hasSecrets = filled !== given
		const named = (pairs: Pair[], values: string[]) => pairs.map(([name], at): Pair => [name, values[at] ?? ''])
		if (hasSecrets) url.search = new URLSearchParams(named(query, filled.query)).toString()
		if (Buffer.byteLength(filled.body ?? '') > BODY_LIMIT)
			throw new Fault('payload_too_large', `the body of a request may have at most ${BODY_LIMIT} bytes`)
		try {
			const response = await send(
				url,
				{ ...(method !== undefined && { method }), headers: named(headers, filled.headers), body: filled.body, signal },
				{
					policy: { protocols: ['https:'], hosts: permissions.hosts, bound },
					max_bytes: BODY_LIMIT,
					timeout_ms: FETCH_MS,
					owner: call.agent.uid,
				},
			)
			return {
				status: response.status,
				url: hasSecrets ? (response.url.split(/[?#]/, 1)[0] ?? '') : response.url,
				headers: Object.fromEntries(response.headers),
				body: await response.text(),
			}
		} catch (error) {
			if (isFault(error, 'address_refused')) violation('address_refused', url.host, error.message)
			// The message of this error may repeat a header.
			if (hasSecrets && isFault(error, 'invalid_request'))
				throw new Fault('invalid_request', 'the request is not valid with the value of its secret')
			throw error
		}
	}

	return async (what, body, signal) => {
		if (!isObject(body)) throw new Fault('invalid_request', 'a call needs its arguments')
		switch (what) {
			case 'primitive':
				return primitive(textOf(body.name), body.args ?? {})
			case 'secret':
				return secret(textOf(body.name))
			case 'fetch':
				return fetch(textOf(body.url), body.init, signal)
		}
	}
}

type Pair = [name: string, value: string]

interface ProgramRequest {
	method: string | undefined
	headers: Pair[]
	body: string | null
}

function requestOf(init: unknown): ProgramRequest {
	const { method, headers = {}, body = null } = isObject(init) ? init : {}
	const wrong = (what: string): Fault => new Fault('invalid_request', `svc.fetch needs ${what}`)
	if (method !== undefined && typeof method !== 'string') throw wrong('a method as text')
	if (body !== null && typeof body !== 'string') throw wrong('a body as text')
	const pairs: unknown[] = Array.isArray(headers) ? headers : isObject(headers) ? Object.entries(headers) : []
	const checked = pairs.map((pair): Pair => {
		const [name, value] = Array.isArray(pair) ? (pair as unknown[]) : []
		if (typeof name === 'string' && (typeof value === 'string' || typeof value === 'number'))
			return [name, String(value)]
		throw wrong('headers as an object with text values')
	})
	return { method, headers: checked, body }
}

function textOf(value: unknown): string {
	if (typeof value === 'string' && value !== '') return value
	throw new Fault('invalid_request', 'a name or address must be text')
}
