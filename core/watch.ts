/** Tells when something that a reload depends on has changed and then been quiet for a moment. */
import { watch } from 'chokidar'
import type { FSWatcher } from 'chokidar'

/** Editors write a file by rename, in several steps; a plugin's files change one after another. */
const QUIET_MS = 100

/**
 * Watches folders and files, those that do not exist yet too. `follow` replaces the set of further folders.
 * `changed` is called once for each burst.
 */
export class Watcher implements AsyncDisposable {
	readonly #watcher: FSWatcher
	readonly #roots: string[]
	#further = new Set<string>()
	#timer: NodeJS.Timeout | undefined

	constructor(paths: string[], changed: () => void) {
		this.#roots = [...paths]
		this.#watcher = watch(paths, { ignoreInitial: true, ignored: (path) => this.#isIgnored(path) })
		this.#watcher.on('all', () => {
			clearTimeout(this.#timer)
			this.#timer = setTimeout(changed, QUIET_MS)
		})
	}

	/** Settles once changes are seen from now on. */
	async ready(): Promise<void> {
		await new Promise<void>((resolve) => this.#watcher.once('ready', resolve))
	}

	follow(folders: string[]): void {
		const wanted = new Set(folders)
		for (const folder of this.#further) if (!wanted.has(folder)) this.#watcher.unwatch(folder)
		for (const folder of wanted) {
			if (this.#further.has(folder)) continue
			this.#roots.push(folder)
			this.#watcher.add(folder)
		}
		this.#further = wanted
	}

	async [Symbol.asyncDispose](): Promise<void> {
		clearTimeout(this.#timer)
		await this.#watcher.close()
	}

	/** Only what is below a watched path counts: the home itself may lie in a folder with a dot, such as ~/.svc. */
	#isIgnored(path: string): boolean {
		const root = this.#roots.find((one) => path.startsWith(one))
		const below = root === undefined ? path : path.slice(root.length)
		return /[\\/](node_modules|\.[^\\/]+)([\\/]|$)/.test(below)
	}
}
