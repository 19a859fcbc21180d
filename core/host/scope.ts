import { messageOf } from '../errors.ts'
import { Late, within } from '../util/deadline.ts'

interface Held {
	label: string
	release: () => unknown
}

/**
 * The one reason of all scopes. A new one would keep its call stack in memory, and with it the generation that retires the
 * instance: an old instance that something still refers to would keep all later generations.
 */
const RELEASED = new DOMException('The plugin was stopped', 'AbortError')

/**
 * What one instance acquired. Releasing aborts the signal first, then releases in reverse order; one release that throws or
 * hangs is reported and skipped, the others still run.
 */
export class Scope {
	readonly #held: Held[] = []
	readonly #controller = new AbortController()
	readonly signal: AbortSignal = this.#controller.signal
	#released = false

	/** In the order in which they were acquired. */
	labels(): string[] {
		return this.#held.map(({ label }) => label)
	}

	defer(release: () => unknown, label: string): void {
		if (this.#released) throw new Error(`"${label}" was acquired after its plugin was released; check ctx.signal first`)
		this.#held.push({ label, release })
	}

	own<T extends AsyncDisposable | Disposable>(thing: T, label: string): T {
		const release = Symbol.asyncDispose in thing ? () => thing[Symbol.asyncDispose]() : () => thing[Symbol.dispose]()
		this.defer(release, label)
		return thing
	}

	/** `deadlineMs` applies to each item separately. Returns one sentence for each failure. */
	async release(deadlineMs: number): Promise<string[]> {
		this.#released = true
		this.#controller.abort(RELEASED)
		const complaints: string[] = []
		for (let held = this.#held.pop(); held; held = this.#held.pop()) {
			const { label, release } = held
			try {
				await within(deadlineMs, label, release())
			} catch (error) {
				const isLate = error instanceof Late
				complaints.push(
					isLate
						? `${label} was not released in ${deadlineMs} ms`
						: `${label} failed to be released: ${messageOf(error)}`,
				)
			}
		}
		return complaints
	}
}
