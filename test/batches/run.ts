/**
 * Runs all batches, or the given files, folders and patterns with one process per file. Prints failures and the number of assertions.
 * tap's own runner loads hooks and source maps into each process and redraws its counts all the time, which takes a fifth of the
 * total time.
 */
import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { statSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { memoryFolder } from './memory-folder.ts'
import { batches, filesOf, onDisk, root } from './table.ts'
import { readTap } from './tap-reader.ts'
import type { Counts } from './tap-reader.ts'

/** Processes at the same time. Tests wait a lot, so this is more than the cores of a small machine; 6 take a tenth more CPU time there. */
const JOBS = 5
/** The time limit of a process in seconds; that of a file is 600 s. Long, since other programs may load the machine. */
const TIMEOUT_S = 1_800
/** Characters kept of a batch's output other than its results. */
const WRITTEN_LIMIT = 64 * 1024
const folder = fileURLToPath(root)
const preloads = ['plain-children', 'one-domain', 'bundled-programs'].map(
	(name) => `--import=./test/support/${name}.mjs`,
)
/** In MiB. A batch creates much garbage: more space for young objects saves 5 % of its CPU time. */
const memory = ['--min-semi-space-size=64', '--max-semi-space-size=64']

interface Job {
	name: string
	/** Arguments of Node. */
	args: string[]
	/** Temporary files are on the disk, and not in memory. */
	isOnDisk: boolean
	/** Output other than results is printed at once. */
	isWatched: boolean
}

const named = process.argv.slice(2)
const jobs = named.length > 0 ? filesNamed(named) : Object.keys(batches).map(batchJob)
if (jobs.length === 0) {
	console.error(`no test file matches ${named.join(' ')}`)
	process.exit(2)
}
const running = new Set<ChildProcess>()
using inMemory = jobs.every(({ isOnDisk }) => isOnDisk) ? undefined : memoryFolder()
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
	process.on(signal, () => {
		for (const child of running) child.kill(signal)
		inMemory?.[Symbol.dispose]()
		process.exit(1)
	})
const began = performance.now()
const sum: Counts = { total: 0, pass: 0, fail: 0, todo: 0, skip: 0 }
const reports: string[] = []
await Promise.all(
	Array.from({ length: JOBS }, async () => {
		for (let job = jobs.shift(); job; job = jobs.shift()) await runOne(job)
	}),
)
console.log(reports.join(''))
console.log(
	`# { ${Object.entries(sum)
		.filter(([, count]) => count > 0)
		.map(([key, count]) => `${key}: ${count}`)
		.join(', ')} }`,
)
console.log(`# time=${seconds(began)} s`)
process.exitCode = reports.length > 0 ? 1 : 0

async function runOne({ name, args, isOnDisk, isWatched }: Job): Promise<void> {
	const start = performance.now()
	let written = ''
	const write = (text: string): void => {
		if (isWatched) process.stderr.write(text)
		else written = (written + text).slice(-WRITTEN_LIMIT)
	}
	const child = spawn(process.execPath, [...memory, ...preloads, ...args], {
		cwd: folder,
		env: {
			TAP_TIMEOUT: String(TIMEOUT_S),
			...process.env,
			...(!isOnDisk && inMemory && { TMPDIR: inMemory.path }),
		},
		stdio: ['ignore', 'pipe', 'pipe'],
	})
	running.add(child)
	const stuck = setTimeout(() => child.kill('SIGKILL'), (TIMEOUT_S + 60) * 1_000)
	const tap = readTap(child.stdout, sum, write)
	child.stderr.on('data', (data: Buffer) => write(String(data)))
	const [code, signal] = (await once(child, 'close')) as [number | null, NodeJS.Signals | null]
	clearTimeout(stuck)
	running.delete(child)
	const isGood = code === 0 && tap.isGood
	console.log(`${isGood ? 'passed' : 'FAILED'} ${name} in ${seconds(start)} s`)
	if (isGood) return
	const end = !tap.isComplete || tap.failures.length === 0 ? `  it ended with ${signal ?? `code ${code}`}\n` : ''
	const other = written === '' ? '' : `  it wrote:\n${written}\n`
	reports.push(`\n${name}\n${tap.failures.join('')}${end}${other}`)
}

function batchJob(name: string): Job {
	return { name, args: ['test/batches/together.ts', name], isOnDisk: onDisk.has(name), isWatched: false }
}

function filesNamed(named: string[]): Job[] {
	const patterns = named.map((one) =>
		statSync(join(folder, one), { throwIfNoEntry: false })?.isDirectory() ? join(one, '**/*.test.ts') : one,
	)
	return filesOf(patterns).map((path) => ({ name: path, args: [path], isOnDisk: true, isWatched: true }))
}

function seconds(since: number): string {
	return ((performance.now() - since) / 1000).toFixed(1)
}
