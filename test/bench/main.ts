/**
 * Compares the gateway with the bare libraries, measured alternately on the same machine:
 *
 *     npm run bench -- [--quick | --long] [--json] [--write] [throughput surfaces load latency fan-out rest webhooks skill shares context memory-search recall upgrade start memory cluster console]
 *
 * Servers, clients and models run in separate processes. `--write` writes docs/performance.md, by default with the metrics of that
 * page. Linux only: process metrics come from /proc.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { cpus, loadavg, release, totalmem } from 'node:os'
import { parseArgs } from 'node:util'
import { chartOf } from './chart.ts'
import { cluster } from './cluster.ts'
import { consolePages } from './console.ts'
import { context } from './context.ts'
import { documentOf } from './document.ts'
import { efforts } from './effort.ts'
import type { Effort, Level } from './effort.ts'
import { fanOut } from './fan-out.ts'
import { latency } from './latency.ts'
import { load } from './load.ts'
import { memory } from './memory.ts'
import { memorySearch } from './memory-search.ts'
import { recall } from './recall.ts'
import { rest } from './rest.ts'
import { shares } from './shares.ts'
import { skillCall } from './skill-call.ts'
import { start } from './start.ts'
import { surfaces } from './surfaces.ts'
import { isMet, ratioOf, summaryOf, tableOf } from './table.ts'
import type { Figure } from './table.ts'
import { throughput } from './throughput.ts'
import { upgrade } from './upgrade.ts'
import { webhooks } from './webhooks.ts'

const metrics: Record<string, (effort: Effort) => Promise<Figure[]>> = {
	throughput,
	surfaces,
	load,
	latency,
	'fan-out': fanOut,
	rest,
	webhooks,
	skill: skillCall,
	shares,
	context,
	'memory-search': memorySearch,
	recall,
	upgrade,
	start,
	cluster,
	memory,
	console: consolePages,
}

const { values, positionals } = parseArgs({
	allowPositionals: true,
	options: {
		quick: { type: 'boolean' },
		long: { type: 'boolean' },
		json: { type: 'boolean' },
		write: { type: 'boolean' },
	},
})
const unknown = positionals.find((name) => !(name in metrics))
if (unknown !== undefined) {
	console.error(`bench: unknown metric "${unknown}"; available: ${Object.keys(metrics).join(', ')}`)
	process.exit(2)
}
if (process.platform !== 'linux') {
	console.error('bench: needs Linux, since process metrics come from /proc')
	process.exit(2)
}

const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
	version: string
}
const level: Level = values.quick ? 'quick' : values.long ? 'long' : 'standard'
const [cpu] = cpus()
const [loadBefore = 0] = loadavg()
const machine = `Node ${process.versions.node}, Linux ${release()}, ${cpus().length} × ${cpu?.model ?? 'unknown'}, ${Math.round(totalmem() / 2 ** 30)} GiB`
// The start first: after the others, the disk is still busy with their data.
const inDocument = ['start', 'throughput', 'surfaces', 'load', 'latency', 'rest', 'webhooks', 'memory-search', 'memory']
const chosen = positionals.length > 0 ? positionals : values.write ? inDocument : Object.keys(metrics)
const figures: Figure[] = []
for (const name of chosen) {
	process.stderr.write(`${name} …\n`)
	figures.push(...((await metrics[name]?.(efforts[level])) ?? []))
}
if (values.json) {
	const rows = figures.map((figure) => ({ ...figure, ratio: ratioOf(figure), met: isMet(figure) }))
	console.log(JSON.stringify({ machine, level, figures: rows }))
} else {
	console.log(`\n${machine}, ${level}\n\n${tableOf(figures)}\n\n${summaryOf(figures)}`)
}
if (values.write) {
	const docs = new URL('../../docs/', import.meta.url)
	writeFileSync(
		new URL('performance.md', docs),
		documentOf({ machine, load: loadBefore, isBusy: loadBefore > cpus().length / 2, level, version, figures }),
	)
	writeFileSync(new URL('images/performance.svg', docs), chartOf(figures))
}
