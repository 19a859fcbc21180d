/** Programs that want all memory there is. */
import type { Hostile } from './program.ts'

const full = ['sandbox_memory', 'sandbox_crash'] as const
/** Slow to fill, or refused by V8 with an error that a program may catch. */
const fullOrLate = [...full, 'sandbox_timeout', 'skill_failed'] as const

export const memory: Hostile[] = [
	{ name: 'arrays', code: 'const a = []; for (;;) a.push(new Array(1e5).fill(1.5))', ends: fullOrLate },
	{ name: 'one array', code: 'return Array(1e9).fill(0).length', ends: fullOrLate },
	{ name: 'a smaller array', code: 'return Array(2e8).fill(0).length', ends: fullOrLate },
	{ name: 'spread text', code: 'return [..."x".repeat(5e8)].length', ends: fullOrLate },
	{ name: 'doubled text', code: 'let s = "x"; for (;;) { s += s; s.charCodeAt(1) }', ends: fullOrLate },
	{
		name: 'flat text',
		code: 'const a = []; for (let i = 0; ; i++) a.push((i + "x".repeat(1e6)).split("").join("y"))',
		ends: fullOrLate,
	},
	{
		name: 'two-byte text',
		code: 'const a = []; for (;;) a.push("\\u4e00".repeat(1e7) + Math.random()) && a.at(-1).indexOf("q")',
		ends: fullOrLate,
	},
	{ name: 'typed arrays', code: 'const a = []; for (;;) a.push(new Uint8Array(1e6).fill(1))', ends: fullOrLate },
	{ name: 'one typed array', code: 'return new Uint8Array(4e9).fill(1).length', ends: fullOrLate },
	{
		name: 'buffers, errors caught',
		code: 'const a = []; for (;;) try { a.push(new ArrayBuffer(1e6)) } catch {}',
		ends: fullOrLate,
	},
	{
		name: 'a buffer that grows',
		code: 'const b = new ArrayBuffer(1, { maxByteLength: 2 ** 32 }); for (let n = 1; ; n *= 2) { b.resize(n); new Uint8Array(b).fill(1) }',
		ends: fullOrLate,
	},
	{
		name: 'many buffers that grow',
		code: 'const a = []; for (;;) { const b = new ArrayBuffer(0, { maxByteLength: 2 ** 26 }); b.resize(2 ** 26); new Uint8Array(b).fill(1); a.push(b) }',
		ends: fullOrLate,
	},
	{
		name: 'tiny buffers',
		code: 'const a = []; for (;;) { const v = new Uint8Array(8); v.buffer; a.push(v) }',
		ends: fullOrLate,
	},
	{
		name: 'transfers',
		code: 'let b = new ArrayBuffer(1); for (;;) b = b.transfer(b.byteLength * 2)',
		ends: fullOrLate,
	},
	{ name: 'a Map', code: 'const m = new Map(); for (let i = 0; ; i++) m.set(i, i)', ends: fullOrLate },
	{ name: 'a Set of texts', code: 'const s = new Set(); for (let i = 0; ; i++) s.add("k" + i)', ends: fullOrLate },
	{
		name: 'a WeakMap',
		code: 'const w = new WeakMap(), keep = []; for (;;) { const k = {}; keep.push(k); w.set(k, new Array(100)) }',
		ends: fullOrLate,
	},
	{ name: 'object keys', code: 'const o = {}; for (let i = 0; ; i++) o["k" + i] = i', ends: fullOrLate },
	{ name: 'symbols', code: 'for (let i = 0; ; i++) Symbol.for("k" + i)', ends: fullOrLate },
	{
		name: 'closures',
		code: 'let f = () => 0; for (;;) { const g = f, x = new Array(50).fill(1); f = () => [g, x] }',
		ends: fullOrLate,
	},
	{ name: 'deep recursion', code: 'const f = (n) => f(n + 1) + 1; return f(0)', ends: ['skill_failed'] },
	{
		name: 'recursion that catches',
		code: 'const f = () => { try { f() } catch { f() } }; f()',
		ends: ['sandbox_timeout', 'skill_failed', 'sandbox_crash'],
	},
	{
		name: 'recursion of toString',
		code: 'const a = []; a[0] = { toString: () => String(a) }; return String(a)',
		ends: ['skill_failed', 'answers'],
	},
	{
		name: 'generators',
		code: 'const a = []; function* g() { yield new Array(1000).fill(1) } for (;;) { const x = g(); x.next(); a.push(x) }',
		ends: fullOrLate,
	},
	{ name: 'promises', code: 'const a = []; for (;;) a.push(new Promise(() => {}))', ends: fullOrLate },
	{ name: 'pending microtasks', code: 'for (;;) Promise.resolve().then(() => {})', ends: fullOrLate },
	{ name: 'unhandled rejections', code: 'for (;;) Promise.reject(new Error("x".repeat(1000)))', ends: fullOrLate },
	{ name: 'a big integer', code: 'let x = 1n; for (;;) x <<= 1000000n', ends: fullOrLate },
	{ name: 'big integers', code: 'const a = []; for (let x = 2n ** 100000n; ; x++) a.push(x)', ends: fullOrLate },
	{
		name: 'a regular expression that is large',
		code: 'new RegExp("(?:a{1,1000}){1,1000}".repeat(1000)).test("a".repeat(1e6))',
		ends: [...fullOrLate, 'answers'],
	},
	{
		name: 'many regular expressions',
		code: 'const a = []; for (let i = 0; ; i++) { const r = new RegExp("x{" + i + "}(a|b|c)*"); r.test("x"); a.push(r) }',
		ends: fullOrLate,
	},
	{ name: 'matches', code: 'return "x".repeat(2 ** 24).match(/x/g).length', ends: [...fullOrLate, 'answers'] },
	{ name: 'template text', code: 'let s = "x"; for (;;) s = `${s}${s}` + s.length', ends: fullOrLate },
	{
		name: 'JSON of one object many times',
		code: 'let o = { a: "x".repeat(1000) }; for (let i = 0; i < 40; i++) o = [o, o]; return o',
		ends: fullOrLate,
	},
	{
		name: 'JSON with much indentation',
		code: 'let o = {}; for (let i = 0; i < 2000; i++) o = { o }; for (let a = [];;) a.push(JSON.stringify(o, null, 10))',
		ends: fullOrLate,
	},
	{
		name: 'an answer that is deep',
		code: 'let o = 1; for (let i = 0; i < 3000; i++) o = [o]; return o',
		ends: ['skill_failed'],
	},
	{ name: 'an answer that is large', code: 'return "x".repeat(2e6)', ends: ['skill_failed'] },
	{ name: 'an error that is large', code: 'throw new Error("x".repeat(1e7))', ends: ['skill_failed', ...full] },
	{
		name: 'an unhandled error that is large',
		code: 'Promise.reject(new Error("x".repeat(1e7))); await new Promise(() => {})',
		ends: ['skill_failed', ...full],
	},
	{ name: 'Error causes', code: 'let e; for (;;) e = new Error("x".repeat(100), { cause: e })', ends: fullOrLate },
	{
		name: 'Intl objects',
		code: 'const a = []; for (;;) a.push(new Intl.NumberFormat("de"), new Intl.Collator("de"))',
		ends: fullOrLate,
	},
	{
		name: 'random bytes',
		code: 'const a = []; for (;;) a.push(crypto.getRandomValues(new Uint8Array(65536)))',
		ends: fullOrLate,
	},
	{
		name: 'URLs',
		code: 'const a = []; for (let i = 0; ; i++) a.push(new URL("https://x.example/" + "y".repeat(10000) + i))',
		ends: fullOrLate,
	},
	{ name: 'arguments', code: 'return Math.max.apply(null, Array(5e7).fill(1))', ends: fullOrLate },
	{
		name: 'Error.stackTraceLimit',
		code: 'Error.stackTraceLimit = 1e9; const f = (n) => n ? f(n - 1) : new Error().stack; const a = []; for (;;) a.push(f(5000))',
		ends: fullOrLate,
	},
]
