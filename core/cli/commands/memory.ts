import { setTimeout as delay } from 'node:timers/promises'
import { consent, yesOption } from '../consent.ts'
import { CliError, path } from '../contract.ts'
import type { Register } from '../contract.ts'
import { count } from '../count.ts'
import { countOption } from '../options.ts'
import { textInput } from '../text-input.ts'
import { when } from '../when.ts'

interface Memory {
	id: string
	content: string
	tags: string[]
	created_at: string
}

interface Found {
	id: string
	content: string
	similarity: number
	created_at: string
}

interface Compaction {
	compaction_id: string
	status: 'running' | 'completed' | 'failed' | 'undone'
	started_at: string
	memories_before: number
	memories_after: number | null
	merged: number
	error: string | null
}

/** How often a compaction is looked at while somebody waits for it. */
const LOOK_MS = 300

export const register: Register = (program, cli) => {
	const memory = program
		.command('memory')
		.description('Search and compact long-term memory')
		.addHelpText('after', examples)

	memory
		.command('search <agent> <query...>')
		.description('Search by meaning and by words, best first')
		.addOption(countOption('--limit <n>', 'how many, 100 at most', { max: 100, fallback: 10 }))
		.action(async (agent: string, words: string[], { limit }: { limit: number }) => {
			const where = path`/v1/agents/${agent}/memory/search?q=${words.join(' ')}&limit=${limit}`
			cli.out.answer(await cli.api.request<Found[]>('GET', where), (list, style) =>
				style.table(
					['similarity', 'id', 'stored', 'memory'],
					list.map((one) => [one.similarity.toFixed(2), one.id, when(one.created_at), one.content]),
					'Nothing found.',
				),
			)
		})

	memory
		.command('list <agent>')
		.description('List what an agent remembers, newest first')
		.addOption(countOption('--limit <n>', 'how many, 100 at most', { max: 100, fallback: 50 }))
		.option('--cursor <cursor>', 'go on where a page ended')
		.action(async (agent: string, { limit, cursor }: { limit: number; cursor?: string }) => {
			const more = cursor === undefined ? '' : path`&cursor=${cursor}`
			const where = path`/v1/agents/${agent}/memory?limit=${limit}` + more
			const page = await cli.api.request<{ memories: Memory[]; next_cursor: string | null }>('GET', where)
			cli.out.answer(page, ({ memories }, style) =>
				style.table(
					['id', 'stored', 'tags', 'memory'],
					memories.map((one) => [one.id, when(one.created_at), one.tags.join(' '), one.content]),
					`No memories yet. Add one: svc memory add ${agent} "The office cat is called Biscotto."`,
				),
			)
			if (page.next_cursor !== null) cli.out.note(`There is more: --cursor ${page.next_cursor}`)
		})

	memory
		.command('add <agent> <text...>')
		.description('Store a memory; - reads it from standard input')
		.option('--tag <tag...>', 'what it is about')
		.action(async (agent: string, words: string[], { tag }: { tag?: string[] }) => {
			const isInput = words.length === 1 && words[0] === '-'
			const content = isInput ? (await textInput(cli, '-')).trimEnd() : words.join(' ')
			const body = { content, ...(tag && { tags: tag }) }
			const stored = await cli.api.request<Memory>('POST', path`/v1/agents/${agent}/memory`, body)
			cli.out.answer(stored, ({ id }) => `Stored ${id}.`)
		})

	memory
		.command('forget <agent> <id>')
		.description('Forget a memory for good, and what a compaction made of it')
		.option(...yesOption)
		.action(async (agent: string, id: string, options: { yes?: boolean }) => {
			await consent(cli, options, `Let ${agent} forget ${id} for good?`)
			await cli.api.request('DELETE', path`/v1/agents/${agent}/memory/${id}`)
			cli.out.answer({ id, status: 'deleted' }, () => `Forgotten.`)
		})

	memory
		.command('compact <agent>')
		.description('Merge what is stored twice and sum up what is old; can be undone')
		.option('--detach', 'do not wait for the end')
		.action(async (agent: string, { detach }: { detach?: boolean }) => {
			const where = path`/v1/agents/${agent}/memory/compact`
			const started = await cli.api.request<{ compaction_id: string; memories_before: number }>('POST', where)
			const { compaction_id, memories_before } = started
			if (detach) return cli.out.answer(started, () => `Started ${compaction_id}, with ${memoriesOf(memories_before)}.`)
			using progress = cli.out.progress(`Compacting ${memoriesOf(memories_before)}`)
			const ended = await endOf(agent, compaction_id).catch((error: unknown) => {
				if (cli.signal.aborted) cli.out.note(`It goes on in the background: svc memory compactions ${agent}`)
				throw error
			})
			progress.done()
			const unchanged = ended.status === 'completed' && ended.merged === 0
			cli.out.answer(ended, ({ memories_after, merged }) => {
				if (memories_after === null) return `It ${ended.status}.`
				if (unchanged) return `Nothing to merge: ${agent} has ${memoriesOf(memories_after)} as before.`
				return `Of ${memoriesOf(memories_before)} there are ${memories_after} now; ${count(merged, 'group')} became one each.`
			})
			if (ended.status === 'failed') throw new CliError('failed', `nothing was changed: ${ended.error}`)
			if (!unchanged) cli.out.note(`To undo it: svc memory undo ${agent}`)
		})

	memory
		.command('compactions <agent>')
		.description('List compactions, newest first')
		.action(async (agent: string) => {
			cli.out.answer(await compactions(agent), (list, style) =>
				style.table(
					['compaction', 'status', 'started', 'before', 'after', 'error'],
					list.map((one) => [
						one.compaction_id,
						one.status,
						when(one.started_at),
						one.memories_before,
						one.memories_after,
						one.error,
					]),
					`No compactions yet. Start one: svc memory compact ${agent}`,
				),
			)
		})

	memory
		.command('undo <agent> [compaction]')
		.description('Undo a compaction, the latest that stands where none is named')
		.option(...yesOption)
		.action(async (agent: string, given: string | undefined, options: { yes?: boolean }) => {
			const id = given ?? (await compactions(agent)).find((one) => one.status === 'completed')?.compaction_id
			if (id === undefined)
				throw new CliError('not_found', `no compaction of ${agent} stands; there is nothing to undo`)
			await consent(cli, options, `Bring back what ${agent} remembered before the compaction ${id}?`)
			const where = path`/v1/agents/${agent}/memory/compactions/${id}/undo`
			const undone = await cli.api.request<Compaction>('POST', where)
			cli.out.answer(undone, ({ memories_before }) => `Undone: ${memoriesOf(memories_before)} as before.`)
		})

	function compactions(agent: string): Promise<Compaction[]> {
		return cli.api.request<Compaction[]>('GET', path`/v1/agents/${agent}/memory/compactions`)
	}

	async function endOf(agent: string, id: string): Promise<Compaction> {
		for (;;) {
			const one = (await compactions(agent)).find(({ compaction_id }) => compaction_id === id)
			if (one === undefined) throw new CliError('not_found', `the compaction ${id} is gone`)
			if (one.status !== 'running') return one
			await delay(LOOK_MS, undefined, { signal: cli.signal })
		}
	}
}

const memoriesOf = (n: number): string => count(n, 'memory', 'memories')

const examples = `
Examples:
  svc memory search ada what is the cat called
  svc memory add ada "The office cat is called Biscotto." --tag office
  svc memory compact ada
  svc memory undo ada`
