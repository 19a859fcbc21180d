/** A home that an older version wrote: `make.ts` makes them. */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Answer } from '../support/gateway.ts'

/** What the older version answered. */
export interface Facts {
	/** ISO 8601. */
	written_at: string
	/** By path. */
	reads: Record<string, Answer>
	/** Of the agent's memory, by query. */
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

/** The versions whose homes are here. */
export const keptVersions = readdirSync(import.meta.dirname)
	.filter((name) => name.endsWith('.tar.gz'))
	.map((name) => name.slice(0, -'.tar.gz'.length))

/** Unpacks it; the caller removes `folder`. */
export function openHome(version: string): { folder: string; home: string; facts: Facts } {
	const folder = mkdtempSync(join(tmpdir(), 'svc-home-'))
	execFileSync('tar', ['-xzf', fileURLToPath(new URL(`${version}.tar.gz`, import.meta.url)), '-C', folder])
	const facts = JSON.parse(readFileSync(join(folder, 'facts.json'), 'utf8')) as Facts
	return { folder, home: join(folder, 'home'), facts }
}
