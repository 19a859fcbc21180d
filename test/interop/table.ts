/** Tests the features of clients, and renders the tables. */
import type { Target } from './target.ts'

/** Throws if the feature does not work. Returns a sentence if the client does not have it, as documented. */
type Feature = (at: Target) => Promise<string | void>

export interface Client {
	/** The name of its package. */
	name: string
	features: Record<string, Feature>
}

export interface Group {
	title: string
	columns: readonly string[]
	clients: readonly Client[]
}

/** By client and feature: `yes`, a sentence, or an error. Absent if the client has no such feature. */
export type Cells = Map<string, Map<string, string | Error>>

export async function tryAll(clients: readonly Client[], at: Target): Promise<Cells> {
	const cells: Cells = new Map()
	for (const { name, features } of clients) {
		const row = new Map<string, string | Error>()
		cells.set(name, row)
		for (const [feature, work] of Object.entries(features)) row.set(feature, await outcomeOf(work, at))
	}
	return cells
}

const WITHIN_MS = 60_000

async function outcomeOf(work: Feature, at: Target): Promise<string | Error> {
	const { promise, reject } = Promise.withResolvers<never>()
	const timer = setTimeout(() => reject(new Error(`it took longer than ${WITHIN_MS / 1000} s`)), WITHIN_MS)
	try {
		return (await Promise.race([work(at), promise])) ?? 'yes'
	} catch (error) {
		return error instanceof Error ? error : new Error(String(error))
	} finally {
		clearTimeout(timer)
	}
}

/** Renders Markdown, with the sentences below the table. `versionOf`: the version of a package. */
export function render({ title, columns, clients }: Group, cells: Cells, versionOf: (name: string) => string): string {
	const notes: string[] = []
	const cell = (name: string, column: string): string => {
		const outcome = cells.get(name)?.get(column)
		if (outcome === undefined) return '–'
		if (outcome instanceof Error) return 'FAILS'
		if (outcome === 'yes') return outcome
		if (!notes.includes(outcome)) notes.push(outcome)
		return `no (${notes.indexOf(outcome) + 1})`
	}
	const line = (parts: readonly string[]): string => `| ${parts.join(' | ')} |\n`
	const rows = clients.map(({ name }) =>
		line([`${name} ${versionOf(name)}`, ...columns.map((column) => cell(name, column))]),
	)
	const below = notes.map((note, at) => `\n${at + 1}. ${note}`).join('')
	return `## ${title}\n\n${line(['', ...columns])}${line(['', ...columns].map(() => '---'))}${rows.join('')}${below && `${below}\n`}\n`
}
