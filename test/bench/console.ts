/**
 * The console in Debian's Chromium: the number of rows that the store reads for each page, compared with a gateway that has few runs
 * and events; and the frame rate of the page Runs while runs start and end.
 */
import type { Page } from 'playwright-core'
import { noBrowser, startBrowser } from '../browser/chromium.ts'
import type { Effort } from './effort.ts'
import { startPeer } from './peer.ts'
import type { Peer } from './peer.ts'
import type { Figure } from './table.ts'

const FEW = 20
const pages = {
	Home: 'home',
	Inbox: 'inbox',
	Runs: 'runs',
	Chat: 'chat/agent-0',
	Agents: 'agents',
	Channels: 'channels',
	Models: 'models',
	Vault: 'vault',
	Tokens: 'tokens',
	Events: 'events',
	Plugins: 'plugins',
	Backups: 'backups',
	Cluster: 'cluster',
	Configuration: 'config',
}
/** Rows of the store that a page may read. */
const ROWS_LIMIT = 5_000
/** A run of the offline model has six events. */
const RUNS_PER_SECOND = 40
const SECONDS = 5
const SETTLED_MS = 400

export async function consolePages({ consoleRuns, consoleEvents }: Effort): Promise<Figure[]> {
	if (noBrowser !== false) {
		process.stderr.write(`console is skipped: ${noBrowser}\n`)
		return []
	}
	const file = new URL('./peers/counting-gateway.ts', import.meta.url)
	await using full = await startPeer(file)
	await using small = await startPeer(file)
	await Promise.all([full.ask('runs', consoleRuns), small.ask('runs', FEW)])
	// In parts, so that each is answered within the time limit.
	for (let left = consoleEvents; left > 0; left -= 100_000) await full.ask('events', Math.min(left, 100_000))
	const browser = await startBrowser([])
	try {
		const ours = await rowsOf(full, await browser.newPage())
		const bare = await rowsOf(small, await browser.newPage())
		const figures = Object.keys(pages).map((name): Figure => {
			const goal = { of: 'ours', most: ROWS_LIMIT } as const
			return { metric: `console, ${name}`, unit: 'rows read', ours: ours[name] ?? 0, bare: bare[name] ?? 0, goal }
		})
		return [...figures, await smoothness(full, await browser.newPage())]
	} finally {
		await browser.close()
	}
}

async function rowsOf(gateway: Peer, page: Page): Promise<Record<string, number>> {
	const url = await gateway.ask<string>('url')
	const rows: Record<string, number> = {}
	for (const [name, hash] of Object.entries(pages)) {
		await page.goto('about:blank')
		await gateway.ask('rows')
		await page.goto(`${url}/#/${hash}`)
		await page.getByRole('heading', { level: 1, name }).waitFor()
		await page.waitForTimeout(SETTLED_MS)
		if ((await page.locator('.problem').count()) > 0) throw new Error(`the page ${name} shows a problem`)
		rows[name] = await gateway.ask<number>('rows')
	}
	return rows
}

/** Frames per second of the page Runs under load, compared with those of an idle gateway. */
async function smoothness(gateway: Peer, page: Page): Promise<Figure> {
	await page.goto(`${await gateway.ask<string>('url')}/#/runs`)
	await page.locator('tbody tr').first().waitFor()
	const frames = (): Promise<number> =>
		page.evaluate(`new Promise((resolve) => {
			let count = 0
			const end = performance.now() + ${SECONDS * 1000}
			const frame = () => performance.now() < end ? (count++, requestAnimationFrame(frame)) : resolve(count / ${SECONDS})
			requestAnimationFrame(frame)
		})`)
	const bare = await frames()
	const load = { seconds: SECONDS, runsPerSecond: RUNS_PER_SECOND }
	const [ours, perSecond] = await Promise.all([frames(), gateway.ask<number>('load', load)])
	return {
		metric: `console, Runs at ${Math.round(perSecond)} events a second`,
		unit: 'frames/s',
		ours,
		bare,
		goal: { of: 'ratio', least: 0.8 },
	}
}
