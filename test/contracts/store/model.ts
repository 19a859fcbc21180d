import fc from 'fast-check'
import type { Test } from 'tap'
import { isFault } from '../../../core/errors.ts'
import type { Key, Op, Rev, Store } from '../../../core/store/ports.ts'
import type { Open } from '../store.ts'

/** Any sequence of commands must have the same results, and fail in the same cases, as a simple model with a list of records. */
export function modelSuite(t: Test, open: Open): void {
	void t.test('behaves like the model for any commands', async (t) => {
		let scope = 0
		await using engine = await open()
		await fc.assert(
			fc.asyncProperty(fc.array(command, { maxLength: 40 }), async (commands) => {
				// A new scope for each run, instead of an empty store.
				const model = new Model(engine.store, `s${scope++}`)
				for (const one of commands) await model.run(one)
				await model.compare()
			}),
			{ numRuns: 150 },
		)
		t.ok(scope >= 150)
	})
	t.end()
}

type Expect = 'any' | 'absent' | 'right' | 'wrong'

interface Write {
	rest: string[]
	value: unknown
	expect: Expect
}

type Command = { kind: 'commit'; writes: Write[] } | { kind: 'list'; rest: string[]; reverse: boolean; after: string[] }

const rest = fc.array(fc.constantFrom('a', 'b', 'a!', 'ü', '😀', '\uffff', '\u0001'), { maxLength: 3 })
const write = fc.record<Write>({
	rest,
	value: fc.oneof(fc.constant(undefined), fc.jsonValue({ maxDepth: 2 })),
	expect: fc.constantFrom<Expect[]>('any', 'any', 'absent', 'right', 'wrong'),
})
const command: fc.Arbitrary<Command> = fc.oneof(
	{
		weight: 3,
		arbitrary: fc.record({ kind: fc.constant('commit' as const), writes: fc.array(write, { maxLength: 4 }) }),
	},
	{ weight: 1, arbitrary: fc.record({ kind: fc.constant('list' as const), rest, reverse: fc.boolean(), after: rest }) },
)

interface StoredRecord {
	key: Key
	value: unknown
	rev: Rev
}

class Model {
	readonly #store: Store
	readonly #scope: string
	#records: StoredRecord[] = []
	/** A revision that some key once had. */
	#old: Rev = 'never'

	constructor(store: Store, scope: string) {
		this.#store = store
		this.#scope = scope
	}

	async run(command: Command): Promise<void> {
		if (command.kind === 'commit') await this.#commit(command.writes)
		else await this.#list(command.rest, command.reverse, command.after)
	}

	async compare(): Promise<void> {
		await this.#list([], false, undefined)
		for (const record of this.#records) same(await this.#store.get(record.key), record)
	}

	async #commit(writes: Write[]): Promise<void> {
		const ops = writes.map(({ rest, value, expect }): Op => {
			const key: Key = [this.#scope, ...rest]
			const rev = this.#find(key)?.rev
			if (expect === 'any') return { key, value }
			return { key, value, expect: expect === 'absent' ? null : expect === 'right' ? (rev ?? null) : this.#old }
		})
		const twice = new Set(ops.map(({ key }) => key.join('\0'))).size < ops.length
		const wrong = ops.some(({ key, expect }) => expect !== undefined && (this.#find(key)?.rev ?? null) !== expect)
		let revs: Rev[]
		try {
			revs = await this.#store.commit(this.#scope, ops)
		} catch (error) {
			if (isFault(error, twice ? 'invalid_request' : 'conflict') && (twice || wrong)) return
			throw error
		}
		if (twice || wrong) throw new Error('the commit should have failed')
		for (const [i, { key, value }] of ops.entries()) {
			const before = this.#find(key)
			if (before) this.#old = before.rev
			this.#records = this.#records.filter((record) => record !== before)
			// Values are stored as JSON, so -0 becomes 0.
			if (value !== undefined)
				this.#records.push({ key, value: JSON.parse(JSON.stringify(value)), rev: revs[i] as Rev })
		}
	}

	async #list(rest: string[], reverse: boolean, after: string[] | undefined): Promise<void> {
		const direction = reverse ? -1 : 1
		const prefix: Key = [this.#scope, ...rest]
		const start: Key | undefined = after && [this.#scope, ...after]
		const expected = this.#records
			.filter(({ key }) => prefix.every((part, i) => key[i] === part))
			.filter(({ key }) => !start || byParts(key, start) * direction > 0)
			.toSorted((a, b) => byParts(a.key, b.key) * direction)
		const options = { reverse, ...(start && { after: start }) }
		same(await Array.fromAsync(this.#store.list(prefix, options)), expected)
		same(
			await Array.fromAsync(this.#store.keys(prefix, options)),
			expected.map(({ key }) => key),
		)
	}

	#find(key: Key): StoredRecord | undefined {
		return this.#records.find((record) => byParts(record.key, key) === 0)
	}
}

function byParts(a: Key, b: Key): number {
	for (let i = 0; i < Math.min(a.length, b.length); i++) {
		const order = Buffer.compare(Buffer.from(a[i] as string), Buffer.from(b[i] as string))
		if (order !== 0) return order
	}
	return a.length - b.length
}

function same(found: unknown, expected: unknown): void {
	const [is, should] = [JSON.stringify(found), JSON.stringify(expected)]
	if (is !== should) throw new Error(`found ${is}, expected ${should}`)
}
