/** Homes that older versions wrote. `make.ts` makes them. */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { endedRun } from '../support/ended-run.ts'
import { send } from '../support/gateway.ts'
import type { Answer } from '../support/gateway.ts'

/** Responses of the older version, and ids that tests need. */
export interface Facts {
	/** ISO 8601. */
	written_at: string
	/** Responses by path. */
	reads: Record<string, Answer>
	/** Results of searches in the memory of `ada`, by query. */
	searches: Record<string, Answer>
	/** Newest first. */
	events: { event_id: string }[]
	mcp: string
	token: string
	webhook: { path: string; secret: string }
	chat: { bot: string; channel: string; chat: string }
	backup: string
	/** The runs that were active when it was killed. */
	runs: { started: string; waiting: string; asking: string }
	question: string
}

/** The versions with a home in this folder. */
export const keptVersions = readdirSync(import.meta.dirname)
	.filter((name) => name.endsWith('.tar.gz'))
	.map((name) => name.slice(0, -'.tar.gz'.length))

/** Requests to a gateway that must succeed. */
export function clientOf(url: string): {
	/** Returns the body of the response. Throws for an error response. */
	request(method: string, path: string, body?: unknown): Promise<Answer>
	/** Waits until a run has ended, and returns it. */
	ended(run_id: string): Promise<Answer>
	/** Starts a run, and returns it after its end. */
	run(agent: string, prompt: string): Promise<Answer>
} {
	const request = async (method: string, path: string, body?: unknown): Promise<Answer> => {
		const reply = await send(url + path, method, body === undefined ? {} : { body })
		if (reply.status >= 400) throw new Error(`${method} ${path}: ${reply.status} ${JSON.stringify(reply.body)}`)
		return reply.body
	}
	const ended = (run_id: string): Promise<Answer> => endedRun(url, run_id)
	const run = async (agent: string, prompt: string): Promise<Answer> =>
		ended((await request('POST', `/v1/agents/${agent}/runs`, { prompt })).run_id)
	return { request, ended, run }
}

/** Unpacks a home. The caller removes `folder`. */
export function openHome(version: string): { folder: string; home: string; facts: Facts } {
	const folder = mkdtempSync(join(tmpdir(), 'svc-home-'))
	execFileSync('tar', ['-xzf', fileURLToPath(new URL(`${version}.tar.gz`, import.meta.url)), '-C', folder])
	const facts = JSON.parse(readFileSync(join(folder, 'facts.json'), 'utf8')) as Facts
	return { folder, home: join(folder, 'home'), facts }
}
