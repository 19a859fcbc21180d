import { messageOf } from '../errors.ts'
import { Late, within } from '../util/deadline.ts'

/**
 * The abort reason of all scopes. A new error would keep its call stack in memory, and with it the generation that retires the
 * instance. Then an old instance that is still referenced would keep all later generations.
 */
const RELEASED = new DOMException('The plugin was stopped', 'AbortError')

/**
 * The resources of one instance. `release` aborts the signal, then releases them in reverse order. A release that throws or
 * hangs is reported, and the others still run.
 */
export class Scope {
	readonly #resources: { label: string; release: () => unknown }[] = []
	readonly #controller = new AbortController()
	readonly signal: AbortSignal = this.#controller.signal

	labels(): string[] {
		return this.#resources.map(({ label }) => label)
	}

	defer(release: () => unknown, label: string): void {
		if (this.signal.aborted)
			throw new Error(`"${label}" was acquired after its plugin was released; check ctx.signal first`)
		this.#resources.push({ label, release })
	}

	own<T extends AsyncDisposable | Disposable>(thing: T, label: string): T {
		const release = Symbol.asyncDispose in thing ? () => thing[Symbol.asyncDispose]() : () => thing[Symbol.dispose]()
		this.defer(release, label)
		return thing
	}

	/** `deadlineMs` applies to each item separately. Returns one sentence for each failure. */
	async release(deadlineMs: number): Promise<string[]> {
		this.#controller.abort(RELEASED)
		const failures: string[] = []
		for (let resource = this.#resources.pop(); resource; resource = this.#resources.pop()) {
			const { label, release } = resource
			try {
				await within(deadlineMs, label, release())
			} catch (error) {
				const isLate = error instanceof Late
				failures.push(
					isLate
						? `${label} was not released in ${deadlineMs} ms`
						: `${label} failed to be released: ${messageOf(error)}`,
				)
			}
		}
		return failures
	}
}
