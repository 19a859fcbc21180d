/** Watches the files on which a reload depends, and reports a change once no further one follows for a moment. */
import { realpathSync } from 'node:fs'
import { sep } from 'node:path'
import { watch } from 'chokidar'
import type { FSWatcher } from 'chokidar'

/** Editors write a file by rename, in several steps; a plugin's files change one after another. */
const QUIET_MS = 100
/** A watch stays at the first target of a link, so links are resolved again at this interval. Any part of a path may be one. */
const LINKS_MS = 1_000

export interface WatchOptions {
	/** Called once for each burst. */
	changed: () => void
	/** Called for each file or folder that cannot be watched. */
	failed: (error: unknown) => void
	/** Called when the watch of a further file or folder is active. Earlier changes in it are not reported. */
	follows: () => void
}

/** Watches files and folders, which need not exist yet, and a changing set of further ones. */
export class Watcher implements AsyncDisposable {
	readonly #paths: string[]
	readonly #options: WatchOptions
	readonly #first: FSWatcher
	/** One watcher each: chokidar does not report changes in a folder that is unwatched and then watched again. */
	readonly #further = new Map<string, FSWatcher>()
	#followed: { path: string; place: string | undefined }[] = []
	#links: NodeJS.Timeout | undefined
	#timer: NodeJS.Timeout | undefined
	readonly #notice = (): void => {
		clearTimeout(this.#timer)
		this.#timer = setTimeout(this.#options.changed, QUIET_MS)
	}

	constructor(paths: string[], options: WatchOptions) {
		this.#paths = paths
		this.#options = options
		this.#first = this.#watch(paths)
	}

	/** Settles once the watch is active. */
	async ready(): Promise<void> {
		await new Promise<void>((resolve) => this.#first.once('ready', resolve))
	}

	/** Replaces the further files and folders to watch; those of the constructor stay. */
	async follow(paths: string[]): Promise<void> {
		this.#followed = paths.map((path) => ({ path, place: placeOf(path) }))
		clearInterval(this.#links)
		if (this.#followed.some(({ path, place }) => place !== path))
			this.#links = setInterval(() => this.#checkLinks(), LINKS_MS).unref()
		const first = this.#paths.flatMap((path) => [path + sep, (placeOf(path) ?? path) + sep])
		const places = this.#followed.map(({ path, place = path }) => place)
		const wanted = new Set(places.filter((place) => !first.some((above) => place.startsWith(above))))
		for (const path of wanted) {
			if (!this.#further.has(path)) this.#further.set(path, this.#watch([path]).once('ready', this.#options.follows))
		}
		for (const [path, watcher] of this.#further) {
			if (wanted.has(path)) continue
			this.#further.delete(path)
			await watcher.close()
		}
	}

	#checkLinks(): void {
		if (this.#followed.every(({ path, place }) => placeOf(path) === place)) return
		this.follow(this.#followed.map(({ path }) => path)).catch(this.#options.failed)
		this.#notice()
	}

	async [Symbol.asyncDispose](): Promise<void> {
		clearTimeout(this.#timer)
		clearInterval(this.#links)
		await Promise.all([this.#first, ...this.#further.values()].map((watcher) => watcher.close()))
	}

	#watch(paths: string[]): FSWatcher {
		const watcher = watch(paths, { ignoreInitial: true, ignored: (path) => isIgnored(path, paths) })
		return watcher.on('error', this.#options.failed).on('all', this.#notice)
	}
}

/** The real path; undefined if it does not exist. */
function placeOf(path: string): string | undefined {
	try {
		return realpathSync(path)
	} catch {
		return undefined // for example while a link is replaced
	}
}

/** Ignores node_modules and dot files, but only below a watched path: the home itself may be in a dot folder, such as ~/.svc. */
function isIgnored(path: string, roots: string[]): boolean {
	const root = roots.find((one) => path.startsWith(one))
	const below = root === undefined ? path : path.slice(root.length)
	return /[\\/](node_modules|\.[^\\/]+)([\\/]|$)/.test(below)
}
