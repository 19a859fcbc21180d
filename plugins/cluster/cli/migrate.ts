import { existsSync, mkdirSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import type { StoreSettings } from '../../../config/types.ts'
import { readConfig } from '../../../core/host/config.ts'
import type { Command } from '../../../core/cli/command.ts'
import type { Cli } from '../../../core/cli/contract.ts'
import type { ObservedLease } from '../../../core/store/ports.ts'
import { schemes } from '../schemes.ts'

const LMDB = 'lmdb:'

export default {
	description: 'Copy all data into a cluster, or from a cluster into a folder; no gateway may use either',
	options: {
		'--from <place>': 'lmdb:FOLDER, or nats://HOST:PORT,…',
		'--to <place>': 'the same; it must be empty',
	},
	examples: `
"lmdb:" alone is the folder of the settings (store.path). For a cluster the settings store.prefix, store.replicas,
store.credentials_file and store.tls apply. The source is not changed, and at the end the copy is compared with it.
A gateway refuses an incomplete copy: remove it, and copy again. Then set store.url, or remove it, and start the gateway.

Examples:
  svc migrate --from lmdb: --to nats://n1:4222,nats://n2:4222,nats://n3:4222
  svc migrate --from nats://n1:4222 --to lmdb:/srv/svc/data
`,
	async run(cli, { from, to }: { from?: string; to?: string }) {
		if (from === undefined || to === undefined)
			throw cli.error('usage', 'name both places: svc migrate --from lmdb: --to nats://HOST:4222')
		const { store } = readConfig({ home: cli.home, env: cli.env })
		const [source, target] = [placeOf(cli, from, store), placeOf(cli, to, store)]
		if (source.url === null && !existsSync(source.path))
			throw cli.error('not_found', `there is no data: ${source.path} does not exist`)
		const { checkFolder } = await import('../../../core/backup/check-folder.ts')
		const { giveToOwner } = await import('../../../core/backup/files.ts')
		const { lockHome } = await import('../../../core/process/lock.ts')
		const { openEngine } = await import('../../../core/engines/open.ts')
		const { copyEngine } = await import('../copy.ts')
		await using stack = new AsyncDisposableStack()
		for (const home of homesOf(cli.home, [source, target])) {
			mkdirSync(join(home, 'run'), { recursive: true, mode: 0o700 })
			stack.use(await lockHome(home))
		}
		using progress = cli.out.progress('Copying')
		const open = async (place: StoreSettings) => {
			if (place.url === null) checkFolder(place.path)
			const inUse = new AbortController()
			let holder = ''
			const onLeaseObserved = (lease: ObservedLease | null): void => {
				if (!lease) return
				holder = lease.holder
				inUse.abort()
			}
			try {
				return stack.use(
					await openEngine({
						store: place,
						home: cli.home,
						signal: AbortSignal.any([inUse.signal, cli.signal]),
						onLeaseObserved,
					}),
				)
			} catch (error) {
				if (!inUse.signal.aborted) throw error
				throw cli.error('conflict', `the gateway ${holder} works on the data in the cluster: stop it first`)
			}
		}
		const engines = { from: await open(source), to: await open(target) }
		const copied = await copyEngine({
			...engines,
			signal: cli.signal,
			step: (what) => progress.update(`Copying: ${what}`),
		})
		for (const path of [join(cli.home, 'run'), ...(target.url === null ? [target.path] : [])])
			await giveToOwner(cli.home, path)
		progress.done('Copied')
		cli.out.answer({ from, to, ...copied }, (one, style) =>
			style.fields([
				['records', one.records],
				['events', one.events],
				['runs to continue', one.jobs],
			]),
		)
		cli.out.note(
			target.url === null
				? `The copy is in ${target.path}: remove store.url from gateway.yaml, set store.path to the folder, and start the gateway.`
				: 'Set store.url in gateway.yaml to the address of the cluster, and start the gateway.',
		)
	},
} satisfies Command

/** The settings of the store for a place given on the command line. */
function placeOf(cli: Cli, text: string, store: StoreSettings): StoreSettings {
	if (text.startsWith(LMDB)) {
		const path = text.slice(LMDB.length)
		return { ...store, url: null, path: path === '' ? store.path : resolve(cli.cwd, path) }
	}
	const isCluster = text
		.split(',')
		.every((one) => URL.canParse(one) && schemes.includes(new URL(one).protocol.slice(0, -1)))
	if (!isCluster) throw cli.error('usage', `"${text}" is not a place; write lmdb:FOLDER, or nats://HOST:PORT`)
	return { ...store, url: text }
}

/** The homes whose gateways must not run: this one, and those that contain a named folder. */
function homesOf(home: string, places: readonly StoreSettings[]): Set<string> {
	const others = places.flatMap(({ url, path }) => (url === null ? dirname(path) : []))
	return new Set([home, ...others.filter((folder) => existsSync(join(folder, 'run')))])
}
