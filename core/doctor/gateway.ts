/** The gateway that runs with a home, and its API. */
import { announcementOf, readAnnouncement } from '../announcement.ts'
import { fromWire, isFault } from '../errors.ts'
import type { FaultCode } from '../errors.ts'
import { holderOf } from '../lock.ts'
import { look } from './look.ts'
import { NotLooked } from './contract.ts'
import type { Patient, RunningGateway } from './contract.ts'

export interface FindOptions extends Pick<Patient, 'home' | 'env' | 'ask'> {}

/** Whether one runs is asked of the home's lock: a file may be left of one that was killed. */
export async function findGateway({ home, env, ask }: FindOptions): Promise<RunningGateway | null> {
	const pid = await holderOf(home)
	if (pid === null) return null
	const url = (await readAnnounced(home))?.url ?? null
	return {
		pid,
		url,
		async get<T>(path: string): Promise<T> {
			const token = env.SVC_TOKEN
			const reply = await (url === null ? undefined : askAt(url))
			if (!reply) throw new NotLooked(`the gateway (process ${pid}) does not answer`, 'see what home.lock says first')
			const { status, body } = reply
			if (status === 200) return body as T
			const said = saidIn(body)
			if (status === 401)
				throw new NotLooked(
					token ? 'the gateway refuses the token of SVC_TOKEN' : 'the gateway asks for a token',
					'give one that may read everything: SVC_TOKEN=svc_… svc doctor',
				)
			if (status === 403)
				throw new NotLooked(
					`the token of SVC_TOKEN may not read this (${said})`,
					'give one with that scope in SVC_TOKEN',
				)
			throw fromWire({ code: codeIn(body), message: said })

			async function askAt(address: string) {
				try {
					return await ask(address + path, token ? { headers: { authorization: `Bearer ${token}` } } : {})
				} catch (error) {
					if (isFault(error)) return undefined
					throw error
				}
			}
		},
	}
}

/** What a gateway wrote into run/gateway.json; undefined where there is no such file, or it holds something else. */
export async function readAnnounced(home: string): Promise<{ pid: number; url: string | null } | undefined> {
	// Opening a pipe would wait for ever.
	if (!(await look(announcementOf(home)).catch(() => undefined))?.isFile()) return undefined
	const said = readAnnouncement(home)
	return said && { pid: Number(said.pid), url: typeof said.url === 'string' ? said.url : null }
}

function codeIn(body: unknown): FaultCode {
	return (body as { code?: FaultCode } | undefined)?.code ?? 'unavailable'
}

function saidIn(body: unknown): string {
	const message = (body as { message?: unknown } | undefined)?.message
	return typeof message === 'string' ? message : 'without a word'
}
