/** The gateway that runs with a home, and its API. */
import { runtimeFileOf, readRuntimeFile } from '../../process/runtime-file.ts'
import { fromWire, isFault } from '../../errors.ts'
import type { FaultCode } from '../../errors.ts'
import { holderOf } from '../../process/lock.ts'
import { tokenFor } from '../logins.ts'
import { statOf } from './stat-of.ts'
import { NotChecked } from './contract.ts'
import type { CheckContext, RunningGateway } from './contract.ts'

export interface FindOptions extends Pick<CheckContext, 'home' | 'env' | 'ask'> {}

/** Whether one runs is asked of the home's lock: a file may be left of one that was killed. */
export async function findGateway({ home, env, ask }: FindOptions): Promise<RunningGateway | null> {
	const pid = await holderOf(home)
	if (pid === null) return null
	const url = (await readAnnounced(home))?.url ?? null
	return {
		pid,
		url,
		async get<T>(path: string): Promise<T> {
			const token = url === null ? undefined : tokenFor(env, home, url)
			const reply = await (url === null ? undefined : askAt(url))
			if (!reply || isFault(reply)) {
				const but = isFault(reply, 'fetch_timeout') ? 'accepts connections, but ' : ''
				throw new NotChecked(`the gateway (process ${pid}) ${but}does not answer`, 'see home.lock first')
			}
			const { status, body } = reply
			if (status === 200) return body as T
			const message = messageIn(body)
			const source = env.SVC_TOKEN ? 'of SVC_TOKEN' : 'that svc login stored'
			if (status === 401)
				throw new NotChecked(
					token ? `the gateway refuses the token ${source}` : 'the gateway requires a token',
					'give one that may read everything: svc login, or SVC_TOKEN=svc_… svc doctor',
				)
			if (status === 403)
				throw new NotChecked(
					`the token ${source} may not read this (${message})`,
					'give one with that scope: svc login, or SVC_TOKEN',
				)
			throw fromWire({ code: codeIn(body), message })

			async function askAt(address: string) {
				try {
					return await ask(address + path, token ? { headers: { authorization: `Bearer ${token}` } } : {})
				} catch (error) {
					if (isFault(error)) return error
					throw error
				}
			}
		},
	}
}

/** What a gateway wrote into run/gateway.json; undefined if there is no such file, or it holds something else. */
export async function readAnnounced(home: string): Promise<{ pid: number; url: string | null } | undefined> {
	// Opening a pipe would block forever.
	if (!(await statOf(runtimeFileOf(home)).catch(() => undefined))?.isFile()) return undefined
	const file = readRuntimeFile(home)
	return file && { pid: Number(file.pid), url: typeof file.url === 'string' ? file.url : null }
}

function codeIn(body: unknown): FaultCode {
	return (body as { code?: FaultCode } | undefined)?.code ?? 'unavailable'
}

function messageIn(body: unknown): string {
	const message = (body as { message?: unknown } | undefined)?.message
	return typeof message === 'string' ? message : 'without a word'
}
