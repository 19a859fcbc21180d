/** The gateway that runs with a home, and its API. */
import { runtimeFileOf, readRuntimeFile } from '../../process/runtime-file.ts'
import { fromWire, isFault } from '../../errors.ts'
import type { Fault, WireError } from '../../errors.ts'
import { holderOf } from '../../process/lock.ts'
import type { Health } from '../../status.ts'
import { CliError } from '../contract.ts'
import { tokenFor } from '../logins.ts'
import { statOf } from './stat-of.ts'
import { NotChecked } from './contract.ts'
import type { CheckContext, Request, RunningGateway } from './contract.ts'

const tokenAdvice = 'give one that may read everything: svc login, or SVC_TOKEN=svc_… svc doctor'

/** Null if none runs. The home's lock shows that: the runtime file may be that of a gateway that was killed. */
export async function findGateway({
	home,
	env,
	ask,
}: Pick<CheckContext, 'home' | 'env' | 'ask'>): Promise<RunningGateway | null> {
	const pid = await holderOf(home)
	if (pid === null) return null
	const url = (await readAnnounced(home))?.url ?? null
	return {
		pid,
		url,
		get: <T>(path: string) => call<T>(path, {}),
		post: <T>(path: string, body: object) => call<T>(path, { method: 'POST', body }),
	}

	function tokenAt(url: string): string | undefined {
		try {
			return tokenFor(env, home, url)
		} catch (error) {
			throw error instanceof CliError ? new NotChecked(error.message, tokenAdvice) : error
		}
	}

	async function call<T>(path: string, request: Request): Promise<T> {
		const token = url === null ? undefined : tokenAt(url)
		const headers = token ? { headers: { authorization: `Bearer ${token}` } } : {}
		const reply = await (url === null ? undefined : ask(url + path, { ...request, ...headers }).catch(faultOnly))
		if (!reply || isFault(reply)) {
			const but = isFault(reply, 'fetch_timeout') ? 'accepts connections, but ' : ''
			throw new NotChecked(`the gateway (process ${pid}) ${but}does not answer`, 'see home.lock first')
		}
		const { status, body } = reply
		if (status === 200) return body as T
		const { code = 'unavailable', message = `status ${status} without a message` } = (body ?? {}) as Partial<WireError>
		const source = env.SVC_TOKEN ? 'of SVC_TOKEN' : 'that svc login stored'
		if (status === 401)
			throw new NotChecked(
				token ? `the gateway refuses the token ${source}` : 'the gateway requires a token',
				tokenAdvice,
			)
		if (status === 403)
			throw new NotChecked(
				`the token ${source} may not read this (${message})`,
				'give one with that scope: svc login, or SVC_TOKEN',
			)
		throw fromWire({ code, message: String(message) })
	}
}

/** The problem that a gateway reports for one of its parts, such as `store`; null if there is none. */
export async function troubleOf(gateway: RunningGateway, part: string): Promise<string | null> {
	const { checks } = await gateway.get<Health>('/v1/health')
	return checks.find(({ name, ok }) => name === part && !ok)?.message ?? null
}

/** The content of run/gateway.json; undefined if there is no such file, or it contains something else. */
export async function readAnnounced(home: string): Promise<{ pid: number; url: string | null } | undefined> {
	// Opening a pipe would block forever.
	if (!(await statOf(runtimeFileOf(home)).catch(() => undefined))?.isFile()) return undefined
	const file = readRuntimeFile(home)
	return file && { pid: Number(file.pid), url: typeof file.url === 'string' ? file.url : null }
}

function faultOnly(error: unknown): Fault {
	if (isFault(error)) return error
	throw error
}
