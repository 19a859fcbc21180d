/** Programs that exhaust memory. */
import type { Hostile } from './program.ts'

const full = ['sandbox_memory', 'sandbox_crash'] as const
/** Memory that is slow to fill, or that V8 refuses with an error that a program may catch. */
const fullOrTimeout = [...full, 'sandbox_timeout', 'skill_failed'] as const

export const memory: Hostile[] = [
	{ name: 'arrays', code: 'const a = []; for (;;) a.push(new Array(1e5).fill(1.5))', ends: fullOrTimeout },
	{ name: 'one array', code: 'return Array(1e9).fill(0).length', ends: fullOrTimeout },
	{ name: 'a smaller array', code: 'return Array(2e8).fill(0).length', ends: fullOrTimeout },
	{ name: 'spread text', code: 'return [..."x".repeat(5e8)].length', ends: fullOrTimeout },
	{ name: 'doubled text', code: 'let s = "x"; for (;;) { s += s; s.charCodeAt(1) }', ends: fullOrTimeout },
	{
		name: 'flat text',
		code: 'const a = []; for (let i = 0; ; i++) a.push((i + "x".repeat(1e6)).split("").join("y"))',
		ends: fullOrTimeout,
	},
	{
		name: 'two-byte text',
		code: 'const a = []; for (;;) a.push("\\u4e00".repeat(1e7) + Math.random()) && a.at(-1).indexOf("q")',
		ends: fullOrTimeout,
	},
	{ name: 'typed arrays', code: 'const a = []; for (;;) a.push(new Uint8Array(1e6).fill(1))', ends: fullOrTimeout },
	{ name: 'one typed array', code: 'return new Uint8Array(4e9).fill(1).length', ends: fullOrTimeout },
	{
		name: 'buffers, errors caught',
		code: 'const a = []; for (;;) try { a.push(new ArrayBuffer(1e6)) } catch {}',
		ends: fullOrTimeout,
	},
	{
		name: 'a buffer that grows',
		code: 'const b = new ArrayBuffer(1, { maxByteLength: 2 ** 32 }); for (let n = 1; ; n *= 2) { b.resize(n); new Uint8Array(b).fill(1) }',
		ends: fullOrTimeout,
	},
	{
		name: 'many buffers that grow',
		code: 'const a = []; for (;;) { const b = new ArrayBuffer(0, { maxByteLength: 2 ** 26 }); b.resize(2 ** 26); new Uint8Array(b).fill(1); a.push(b) }',
		ends: fullOrTimeout,
	},
	{
		name: 'tiny buffers',
		code: 'const a = []; for (;;) { const v = new Uint8Array(8); v.buffer; a.push(v) }',
		ends: fullOrTimeout,
	},
	{
		name: 'transferred buffers',
		code: 'let b = new ArrayBuffer(1); for (;;) b = b.transfer(b.byteLength * 2)',
		ends: fullOrTimeout,
	},
	{ name: 'a Map', code: 'const m = new Map(); for (let i = 0; ; i++) m.set(i, i)', ends: fullOrTimeout },
	{ name: 'a Set of texts', code: 'const s = new Set(); for (let i = 0; ; i++) s.add("k" + i)', ends: fullOrTimeout },
	{
		name: 'a WeakMap',
		code: 'const w = new WeakMap(), keep = []; for (;;) { const k = {}; keep.push(k); w.set(k, new Array(100)) }',
		ends: fullOrTimeout,
	},
	{ name: 'object keys', code: 'const o = {}; for (let i = 0; ; i++) o["k" + i] = i', ends: fullOrTimeout },
	{ name: 'symbols', code: 'for (let i = 0; ; i++) Symbol.for("k" + i)', ends: fullOrTimeout },
	{
		name: 'closures',
		code: 'let f = () => 0; for (;;) { const g = f, x = new Array(50).fill(1); f = () => [g, x] }',
		ends: fullOrTimeout,
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
		ends: fullOrTimeout,
	},
	{ name: 'promises', code: 'const a = []; for (;;) a.push(new Promise(() => {}))', ends: fullOrTimeout },
	{ name: 'pending microtasks', code: 'for (;;) Promise.resolve().then(() => {})', ends: fullOrTimeout },
	{ name: 'unhandled rejections', code: 'for (;;) Promise.reject(new Error("x".repeat(1000)))', ends: fullOrTimeout },
	{ name: 'a big integer', code: 'let x = 1n; for (;;) x <<= 1000000n', ends: fullOrTimeout },
	{ name: 'big integers', code: 'const a = []; for (let x = 2n ** 100000n; ; x++) a.push(x)', ends: fullOrTimeout },
	{
		name: 'a large regular expression',
		code: 'new RegExp("(?:a{1,1000}){1,1000}".repeat(1000)).test("a".repeat(1e6))',
		ends: [...fullOrTimeout, 'answers'],
	},
	{
		name: 'many regular expressions',
		code: 'const a = []; for (let i = 0; ; i++) { const r = new RegExp("x{" + i + "}(a|b|c)*"); r.test("x"); a.push(r) }',
		ends: fullOrTimeout,
	},
	{ name: 'matches', code: 'return "x".repeat(2 ** 24).match(/x/g).length', ends: [...fullOrTimeout, 'answers'] },
	{ name: 'template text', code: 'let s = "x"; for (;;) s = `${s}${s}` + s.length', ends: fullOrTimeout },
	{
		name: 'JSON of one object many times',
		code: 'let o = { a: "x".repeat(1000) }; for (let i = 0; i < 40; i++) o = [o, o]; return o',
		ends: fullOrTimeout,
	},
	{
		name: 'JSON with much indentation',
		code: 'let o = {}; for (let i = 0; i < 2000; i++) o = { o }; for (let a = [];;) a.push(JSON.stringify(o, null, 10))',
		ends: fullOrTimeout,
	},
	{
		name: 'a deeply nested answer',
		code: 'let o = 1; for (let i = 0; i < 3000; i++) o = [o]; return o',
		ends: ['skill_failed'],
	},
	{ name: 'a large answer', code: 'return "x".repeat(2e6)', ends: ['skill_failed'] },
	{ name: 'a large error', code: 'throw new Error("x".repeat(1e7))', ends: ['skill_failed', ...full] },
	{
		name: 'a large unhandled error',
		code: 'Promise.reject(new Error("x".repeat(1e7))); await new Promise(() => {})',
		ends: ['skill_failed', ...full],
	},
	{ name: 'Error causes', code: 'let e; for (;;) e = new Error("x".repeat(100), { cause: e })', ends: fullOrTimeout },
	{
		name: 'Intl objects',
		code: 'const a = []; for (;;) a.push(new Intl.NumberFormat("de"), new Intl.Collator("de"))',
		ends: fullOrTimeout,
	},
	{
		name: 'random bytes',
		code: 'const a = []; for (;;) a.push(crypto.getRandomValues(new Uint8Array(65536)))',
		ends: fullOrTimeout,
	},
	{
		name: 'URLs',
		code: 'const a = []; for (let i = 0; ; i++) a.push(new URL("https://x.example/" + "y".repeat(10000) + i))',
		ends: fullOrTimeout,
	},
	{ name: 'a call with many arguments', code: 'return Math.max.apply(null, Array(5e7).fill(1))', ends: fullOrTimeout },
	{
		name: 'Error.stackTraceLimit',
		code: 'Error.stackTraceLimit = 1e9; const f = (n) => n ? f(n - 1) : new Error().stack; const a = []; for (;;) a.push(f(5000))',
		ends: fullOrTimeout,
	},
]
