/** Programs that do not want to end: in JavaScript, in microtasks, in getters that others call, in V8's own C++. */
import type { Hostile } from './program.ts'

const late = ['sandbox_timeout'] as const
/** What allocates on the way may meet the other limit first. */
const lateOrFull = ['sandbox_timeout', 'sandbox_memory', 'sandbox_crash'] as const

export const loops: Hostile[] = [
	{ name: 'a loop', code: 'for (;;);', ends: late },
	{ name: 'a loop while the module is evaluated', code: 'for (;;);\nexport default () => 1', ends: late },
	{ name: 'a loop with a try around it', code: 'for (;;) try { for (;;); } catch {} finally { continue }', ends: late },
	{ name: 'a loop after await', code: 'await 1; for (;;);', ends: late },
	{ name: 'a loop of microtasks', code: 'for (;;) await 1', ends: late },
	{
		name: 'microtasks that call each other',
		code: 'const f = () => Promise.resolve().then(f); await f()',
		ends: lateOrFull,
	},
	{
		name: 'microtasks that go on after the answer',
		code: 'const f = () => queueMicrotask(f); f(); return 1',
		ends: late,
	},
	{
		name: 'timers that go on after the answer',
		code: 'const f = () => setTimeout(f, 0); f(); return 1',
		ends: ['answers'],
		answer: 1,
	},
	{
		name: 'timers for ever',
		code: 'const f = () => setTimeout(f, 0); f(); await new Promise(() => {})',
		ends: ['skill_failed', ...late],
	},
	{ name: 'a loop in a timer', code: 'setTimeout(() => { for (;;); }); await new Promise(() => {})', ends: late },
	{
		name: 'a loop in a timer, after the answer',
		code: 'setTimeout(() => { for (;;); }); await svc.primitive("echo")',
		ends: ['answers', ...late],
	},
	{ name: 'a promise that never settles', code: 'await new Promise(() => {})', ends: ['skill_failed'] },
	{
		name: 'a module that waits for ever',
		code: 'await new Promise(() => {})\nexport default () => 1',
		ends: ['skill_failed'],
	},
	{ name: 'a primitive that never answers', code: 'await svc.primitive("hang")', ends: late },
	{ name: 'a thenable that loops', code: 'return { then() { for (;;); } }', ends: late },
	{ name: 'a thenable that resolves with itself', code: 'const t = { then(r) { r(t) } }; return t', ends: lateOrFull },
	{ name: 'a thenable that never calls', code: 'return { then() {} }', ends: ['skill_failed'] },
	{
		name: 'a thrown object with getters that loop',
		code: 'throw { get message() { for (;;); }, get stack() { for (;;); } }',
		ends: late,
	},
	{ name: 'a thrown proxy that loops', code: 'throw new Proxy(new Error("x"), { get() { for (;;); } })', ends: late },
	{
		name: 'a rejection that nobody handles, with getters that loop',
		code: 'Promise.reject({ get message() { for (;;); } }); return 1',
		ends: late,
	},
	{
		name: 'a rejection that nobody handles, a proxy',
		code: 'Promise.reject(new Proxy({}, { get() { for (;;); }, getPrototypeOf() { for (;;); } })); return 1',
		ends: late,
	},
	{
		name: 'a module that throws getters that loop',
		code: 'throw { get message() { for (;;); } }\nexport default () => 1',
		ends: late,
	},
	{
		name: 'prepareStackTrace',
		code: 'Error.prepareStackTrace = () => { for (;;); }; throw new Error("x")',
		ends: late,
	},
	{
		name: 'prepareStackTrace, unhandled',
		code: 'Error.prepareStackTrace = () => { for (;;); }; Promise.reject(new Error("x")); return 1',
		ends: late,
	},
	{
		name: 'a message that loops when it becomes text',
		code: 'const e = new Error(); e.message = { toString() { for (;;); } }; Promise.reject(e); return 1',
		ends: late,
	},
	{ name: 'toJSON', code: 'return { toJSON() { for (;;); } }', ends: late },
	{ name: 'a getter in the answer', code: 'return { get a() { for (;;); } }', ends: late },
	{ name: 'a proxy as answer', code: 'return new Proxy({}, { ownKeys() { for (;;); } })', ends: late },
	{ name: 'toString of what is logged', code: 'svc.log({ toJSON() { for (;;); } }); return 1', ends: late },
	{ name: 'valueOf of a delay', code: 'setTimeout(() => 1, { valueOf() { for (;;); } })', ends: late },
	{ name: 'toString of an address', code: 'await svc.fetch({ toString() { for (;;); } })', ends: late },
	{
		name: 'a getter in a request',
		code: 'await svc.fetch("https://x.example", { get body() { for (;;); } })',
		ends: late,
	},
	{
		name: 'a getter that all objects inherit',
		code: 'Object.defineProperty(Object.prototype, "then", { get() { for (;;); } }); return await svc.primitive("echo", {})',
		ends: late,
	},
	{ name: 'a comparison that loops', code: '[2, 1].sort(() => { for (;;); })', ends: late },
	{
		name: 'a comparison that never ends the sort',
		code: 'const a = Array.from({ length: 1e6 }, Math.random); for (;;) a.sort(() => Math.random() - 0.5)',
		ends: lateOrFull,
	},
	{ name: 'a regular expression that backtracks', code: '/^(a+)+$/.test("a".repeat(40) + "b")', ends: late },
	{
		name: 'an async generator',
		code: 'async function* g() { for (;;) yield 1 } for await (const x of g());',
		ends: late,
	},
	{
		name: 'yield* of an async iterator that never ends',
		code: 'const it = { [Symbol.asyncIterator]() { return this }, next: async () => ({ done: false }) }; async function* g() { yield* it } for await (const x of g());',
		ends: late,
	},
	{
		name: 'an iterator that never ends',
		code: 'new Set({ [Symbol.iterator]: () => ({ next: () => ({ value: 1, done: false }) }) })',
		ends: late,
	},
	{
		name: 'Array.fromAsync of an endless source',
		code: 'await Array.fromAsync((function* () { for (;;) yield 1 })())',
		ends: lateOrFull,
	},
	{
		name: 'a proxy for a prototype',
		code: 'Object.setPrototypeOf(Array.prototype, new Proxy({}, { get() { for (;;); } })); svc.log([1].none)',
		ends: late,
	},
	{ name: 'fill', code: 'const a = new Array(1e9); a.fill(0)', ends: lateOrFull },
	{
		name: 'fill of a holey array like',
		code: 'Array.prototype.fill.call({ length: 2 ** 53 - 1 }, 0)',
		ends: lateOrFull,
	},
	{ name: 'indexOf in nothing', code: 'Array.prototype.indexOf.call({ length: 2 ** 53 - 1 }, 1)', ends: lateOrFull },
	{ name: 'reverse of nothing', code: 'Array.prototype.reverse.call({ length: 2 ** 53 - 1 })', ends: lateOrFull },
	{
		name: 'squares of big integers',
		code: 'let x = 2n ** (2n ** 20n); for (;;) x = x * x',
		ends: [...lateOrFull, 'skill_failed'],
	},
	{ name: 'a big integer as text', code: 'return String(3n ** (2n ** 23n)).length', ends: lateOrFull },
	{ name: 'text of text', code: 'for (;;) "x".repeat(2 ** 28).indexOf("y")', ends: lateOrFull },
	{ name: 'replace in C++', code: 'for (;;) "x".repeat(2 ** 22).replaceAll("x", "y")', ends: lateOrFull },
	{
		name: 'normalize in C++',
		code: 'const s = "\\u0344".repeat(2 ** 22); for (;;) s.normalize("NFD")',
		ends: lateOrFull,
	},
	{
		name: 'parsing JSON',
		code: 'const s = "[" + "1,".repeat(2 ** 20) + "1]"; for (;;) JSON.parse(s)',
		ends: lateOrFull,
	},
	{ name: 'Intl', code: 'for (;;) new Intl.DateTimeFormat("de", { dateStyle: "full" }).format(0)', ends: lateOrFull },
	{ name: 'dates', code: 'for (;;) new Date("x".repeat(1e6))', ends: lateOrFull },
	{ name: 'sorting typed arrays', code: 'const a = new Float64Array(1e6); for (;;) a.sort()', ends: lateOrFull },
	{ name: 'structuredClone', code: 'const a = []; a.push(a); for (;;) structuredClone(a)', ends: late },
	{ name: 'a tool of the process', code: 'for (;;) URL.canParse("https://x.example/" + Math.random())', ends: late },
	{ name: 'random numbers of the process', code: 'for (;;) crypto.getRandomValues(new Uint8Array(65536))', ends: late },
	{ name: 'a class with static blocks', code: 'class A { static { for (;;); } }', ends: late },
	{ name: 'a tagged template', code: '((s, ...v) => { for (;;); })`a${1}`', ends: late },
	{
		name: 'finally that returns to the loop',
		code: 'label: for (;;) { try { return 1 } finally { continue label } }',
		ends: late,
	},
	{ name: 'disposal that loops', code: 'using x = { [Symbol.dispose]() { for (;;); } }; return 1', ends: late },
	{
		name: 'a lock of the thread',
		code: 'Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)',
		ends: ['skill_failed'],
	},
]
