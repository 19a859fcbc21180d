import { setTimeout as delay } from 'node:timers/promises'
import { consent, yesOption } from '../../../core/cli/consent.ts'
import { CliError, path } from '../../../core/cli/contract.ts'
import type { Command } from '../../../core/cli/command.ts'
import type { Cli } from '../../../core/cli/contract.ts'
import { answerTable, tableOf } from '../../../core/cli/lists.ts'
import { pluralize } from '../../../core/util/pluralize.ts'
import { textOf } from '../../../core/cli/text-input.ts'
import { when } from '../../../core/cli/when.ts'
import type { Compaction, Memory, MemoryPage, SearchResult } from '../contract.ts'

const POLL_MS = 300

export default {
	examples: `
Examples:
  svc memory search ada what is the cat called
  svc memory add ada "The office cat is called Biscotto." --tag office
  svc memory compact ada
  svc memory undo ada`,
	commands: {
		search: {
			description: 'Search by meaning and by words, best first',
			arguments: '<agent> <query...>',
			options: { '--limit <n>': { about: 'how many, 100 at most', max: 100, default: 10 } },
			async run(cli, { agent, query: words, limit }: { agent: string; query: string[]; limit: number }) {
				const where = path`/v1/agents/${agent}/memory/search?q=${words.join(' ')}&limit=${limit}`
				answerTable(cli, await cli.api.request<SearchResult[]>('GET', where), 'Nothing found.', (one) => ({
					similarity: one.similarity.toFixed(2),
					id: one.id,
					stored: when(one.created_at),
					memory: one.content,
				}))
			},
		},
		list: {
			description: 'List the memories of an agent, newest first',
			arguments: '<agent>',
			options: {
				'--limit <n>': { about: 'how many, 100 at most', max: 100, default: 50 },
				'--cursor <cursor>': 'continue after an earlier page',
			},
			async run(cli, { agent, limit, cursor }: { agent: string; limit: number; cursor?: string }) {
				const after = cursor === undefined ? '' : path`&cursor=${cursor}`
				const where = path`/v1/agents/${agent}/memory?limit=${limit}` + after
				const page = await cli.api.request<MemoryPage>('GET', where)
				const empty = `No memories yet. Add one: svc memory add ${agent} "The office cat is called Biscotto."`
				cli.out.answer(page, ({ memories }, style) =>
					tableOf(memories, style, empty, (one) => ({
						id: one.id,
						stored: when(one.created_at),
						tags: one.tags.join(' '),
						memory: one.content,
					})),
				)
				if (page.next_cursor !== null) cli.out.note(`There is more: --cursor ${page.next_cursor}`)
			},
		},
		add: {
			description: 'Store a memory; - reads it from standard input',
			arguments: '<agent> <text...>',
			options: { '--tag <tag...>': 'what it is about' },
			async run(cli, { agent, text: words, tag }: { agent: string; text: string[]; tag?: string[] }) {
				const content = (await textOf(cli, words)).trimEnd()
				const body = { content, tags: tag }
				const stored = await cli.api.request<Memory>('POST', path`/v1/agents/${agent}/memory`, body)
				cli.out.answer(stored, ({ id }) => `Stored ${id}.`)
			},
		},
		forget: {
			description: 'Delete a memory permanently, with the originals from which a compaction made it',
			arguments: '<agent> <id>',
			options: yesOption,
			async run(cli, { agent, id, ...options }: { agent: string; id: string; yes?: boolean }) {
				await consent(cli, options, `Let ${agent} forget ${id} permanently?`)
				await cli.api.request('DELETE', path`/v1/agents/${agent}/memory/${id}`)
				cli.out.answer({ id, status: 'deleted' }, () => `Forgotten.`)
			},
		},
		encoder: {
			description: 'Install and select the sentence encoder, which finds memories by meaning without a server',
			options: yesOption,
			async run(cli, options: { yes?: boolean }) {
				const { installEncoder } = await import('./encoder.ts')
				await installEncoder(cli, options)
			},
		},
		compact: {
			description: 'Merge duplicates and summarize old memories; can be undone',
			arguments: '<agent>',
			options: { '--detach': 'do not wait for the end' },
			async run(cli, { agent, detach }: { agent: string; detach?: boolean }) {
				const where = path`/v1/agents/${agent}/memory/compact`
				const started = await cli.api.request<{ compaction_id: string; memories_before: number }>('POST', where)
				const { compaction_id, memories_before } = started
				if (detach)
					return cli.out.answer(started, () => `Started ${compaction_id}, with ${memoriesOf(memories_before)}.`)
				using progress = cli.out.progress(`Compacting ${memoriesOf(memories_before)}`)
				const ended = await endOf(cli, agent, compaction_id).catch((error: unknown) => {
					if (cli.signal.aborted) cli.out.note(`It continues in the background: svc memory compactions ${agent}`)
					throw error
				})
				progress.done()
				const unchanged = ended.status === 'completed' && ended.merged === 0
				cli.out.answer(ended, ({ memories_after, merged }) => {
					if (memories_after === null) return `Compaction ${ended.status}.`
					if (unchanged) return `Nothing to merge: ${agent} has ${memoriesOf(memories_after)} as before.`
					return `Merged ${pluralize(merged, 'group')}: ${memoriesOf(memories_before)} before, ${memories_after} now.`
				})
				if (ended.status === 'failed') throw new CliError('failed', `nothing was changed: ${ended.error}`)
				if (!unchanged) cli.out.note(`To undo it: svc memory undo ${agent}`)
			},
		},
		compactions: {
			description: 'List compactions, newest first',
			arguments: '<agent>',
			async run(cli, { agent }: { agent: string }) {
				const empty = `No compactions yet. Start one: svc memory compact ${agent}`
				answerTable(cli, await compactions(cli, agent), empty, (one) => ({
					compaction: one.compaction_id,
					status: one.status,
					started: when(one.started_at),
					before: one.memories_before,
					after: one.memories_after,
					error: one.error,
				}))
			},
		},
		undo: {
			description: 'Undo a compaction; default: the latest that is not undone',
			arguments: '<agent> [compaction]',
			options: yesOption,
			async run(cli, { agent, compaction: given, ...options }: { agent: string; compaction?: string; yes?: boolean }) {
				const id = given ?? (await compactions(cli, agent)).find((one) => one.status === 'completed')?.compaction_id
				if (id === undefined) throw new CliError('not_found', `${agent} has no compaction to undo`)
				await consent(cli, options, `Restore the memories of ${agent} from before the compaction ${id}?`)
				const where = path`/v1/agents/${agent}/memory/compactions/${id}/undo`
				const undone = await cli.api.request<Compaction>('POST', where)
				cli.out.answer(undone, ({ memories_before }) => `Undone: ${memoriesOf(memories_before)} as before.`)
			},
		},
	},
} satisfies Command

function compactions(cli: Cli, agent: string): Promise<Compaction[]> {
	return cli.api.request<Compaction[]>('GET', path`/v1/agents/${agent}/memory/compactions`)
}

async function endOf(cli: Cli, agent: string, id: string): Promise<Compaction> {
	for (;;) {
		const compaction = (await compactions(cli, agent)).find(({ compaction_id }) => compaction_id === id)
		if (compaction === undefined) throw new CliError('not_found', `the compaction ${id} no longer exists`)
		if (compaction.status !== 'running') return compaction
		await delay(POLL_MS, undefined, { signal: cli.signal })
	}
}

const memoriesOf = (n: number): string => pluralize(n, 'memory', 'memories')
