/** Programs that never end: in JavaScript, in microtasks, in getters that the host calls, in V8's own C++. */
import type { Hostile } from './program.ts'

const timeout = ['sandbox_timeout'] as const
/** A program that allocates may exceed the memory limit first. */
const timeoutOrMemory = ['sandbox_timeout', 'sandbox_memory', 'sandbox_crash'] as const

export const loops: Hostile[] = [
	{ name: 'a loop', code: 'for (;;);', ends: timeout },
	{ name: 'a loop while the module is evaluated', code: 'for (;;);\nexport default () => 1', ends: timeout },
	{
		name: 'a loop with a try around it',
		code: 'for (;;) try { for (;;); } catch {} finally { continue }',
		ends: timeout,
	},
	{ name: 'a loop after await', code: 'await 1; for (;;);', ends: timeout },
	{ name: 'a loop of microtasks', code: 'for (;;) await 1', ends: timeout },
	{
		name: 'microtasks that call each other',
		code: 'const f = () => Promise.resolve().then(f); await f()',
		ends: timeoutOrMemory,
	},
	{
		name: 'microtasks after the answer',
		code: 'const f = () => queueMicrotask(f); f(); return 1',
		ends: timeout,
	},
	{
		name: 'timers after the answer',
		code: 'const f = () => setTimeout(f, 0); f(); return 1',
		ends: ['answers'],
		answer: 1,
	},
	{
		name: 'endless timers',
		code: 'const f = () => setTimeout(f, 0); f(); await new Promise(() => {})',
		ends: ['skill_failed', ...timeout],
	},
	{ name: 'a loop in a timer', code: 'setTimeout(() => { for (;;); }); await new Promise(() => {})', ends: timeout },
	{
		name: 'a loop in a timer, after the answer',
		code: 'setTimeout(() => { for (;;); }); await svc.primitive("echo")',
		ends: ['answers', ...timeout],
	},
	{ name: 'a promise that never settles', code: 'await new Promise(() => {})', ends: ['skill_failed'] },
	{
		name: 'a module that waits forever',
		code: 'await new Promise(() => {})\nexport default () => 1',
		ends: ['skill_failed'],
	},
	{ name: 'a primitive that never answers', code: 'await svc.primitive("hang")', ends: timeout },
	{ name: 'a thenable that loops', code: 'return { then() { for (;;); } }', ends: timeout },
	{
		name: 'a thenable that resolves with itself',
		code: 'const t = { then(r) { r(t) } }; return t',
		ends: timeoutOrMemory,
	},
	{ name: 'a thenable that never calls', code: 'return { then() {} }', ends: ['skill_failed'] },
	{
		name: 'a thrown object with getters that loop',
		code: 'throw { get message() { for (;;); }, get stack() { for (;;); } }',
		ends: timeout,
	},
	{
		name: 'a thrown proxy that loops',
		code: 'throw new Proxy(new Error("x"), { get() { for (;;); } })',
		ends: timeout,
	},
	{
		name: 'an unhandled rejection with getters that loop',
		code: 'Promise.reject({ get message() { for (;;); } }); return 1',
		ends: timeout,
	},
	{
		name: 'an unhandled rejection with a proxy that loops',
		code: 'Promise.reject(new Proxy({}, { get() { for (;;); }, getPrototypeOf() { for (;;); } })); return 1',
		ends: timeout,
	},
	{
		name: 'a module that throws getters that loop',
		code: 'throw { get message() { for (;;); } }\nexport default () => 1',
		ends: timeout,
	},
	{
		name: 'prepareStackTrace',
		code: 'Error.prepareStackTrace = () => { for (;;); }; throw new Error("x")',
		ends: timeout,
	},
	{
		name: 'prepareStackTrace, unhandled',
		code: 'Error.prepareStackTrace = () => { for (;;); }; Promise.reject(new Error("x")); return 1',
		ends: timeout,
	},
	{
		name: 'a message whose toString loops',
		code: 'const e = new Error(); e.message = { toString() { for (;;); } }; Promise.reject(e); return 1',
		ends: timeout,
	},
	{ name: 'toJSON', code: 'return { toJSON() { for (;;); } }', ends: timeout },
	{ name: 'a getter in the answer', code: 'return { get a() { for (;;); } }', ends: timeout },
	{ name: 'a proxy as answer', code: 'return new Proxy({}, { ownKeys() { for (;;); } })', ends: timeout },
	{ name: 'toJSON of a logged value', code: 'svc.log({ toJSON() { for (;;); } }); return 1', ends: timeout },
	{ name: 'valueOf of a delay', code: 'setTimeout(() => 1, { valueOf() { for (;;); } })', ends: timeout },
	{ name: 'toString of an address', code: 'await svc.fetch({ toString() { for (;;); } })', ends: timeout },
	{
		name: 'a getter in a request',
		code: 'await svc.fetch("https://x.example", { get body() { for (;;); } })',
		ends: timeout,
	},
	{
		name: 'a getter that all objects inherit',
		code: 'Object.defineProperty(Object.prototype, "then", { get() { for (;;); } }); return await svc.primitive("echo", {})',
		ends: timeout,
	},
	{ name: 'a comparison that loops', code: '[2, 1].sort(() => { for (;;); })', ends: timeout },
	{
		name: 'a comparison that never ends the sort',
		code: 'const a = Array.from({ length: 1e6 }, Math.random); for (;;) a.sort(() => Math.random() - 0.5)',
		ends: timeoutOrMemory,
	},
	{ name: 'a regular expression that backtracks', code: '/^(a+)+$/.test("a".repeat(40) + "b")', ends: timeout },
	{
		name: 'an async generator',
		code: 'async function* g() { for (;;) yield 1 } for await (const x of g());',
		ends: timeout,
	},
	{
		name: 'yield* of an async iterator that never ends',
		code: 'const it = { [Symbol.asyncIterator]() { return this }, next: async () => ({ done: false }) }; async function* g() { yield* it } for await (const x of g());',
		ends: timeout,
	},
	{
		name: 'an iterator that never ends',
		code: 'new Set({ [Symbol.iterator]: () => ({ next: () => ({ value: 1, done: false }) }) })',
		ends: timeout,
	},
	{
		name: 'Array.fromAsync of an endless source',
		code: 'await Array.fromAsync((function* () { for (;;) yield 1 })())',
		ends: timeoutOrMemory,
	},
	{
		name: 'a proxy as a prototype',
		code: 'Object.setPrototypeOf(Array.prototype, new Proxy({}, { get() { for (;;); } })); svc.log([1].none)',
		ends: timeout,
	},
	{ name: 'fill', code: 'const a = new Array(1e9); a.fill(0)', ends: timeoutOrMemory },
	{
		name: 'fill of an empty array-like',
		code: 'Array.prototype.fill.call({ length: 2 ** 53 - 1 }, 0)',
		ends: timeoutOrMemory,
	},
	{
		name: 'indexOf in an empty array-like',
		code: 'Array.prototype.indexOf.call({ length: 2 ** 53 - 1 }, 1)',
		ends: timeoutOrMemory,
	},
	{
		name: 'reverse of an empty array-like',
		code: 'Array.prototype.reverse.call({ length: 2 ** 53 - 1 })',
		ends: timeoutOrMemory,
	},
	{
		name: 'squares of big integers',
		code: 'let x = 2n ** (2n ** 20n); for (;;) x = x * x',
		ends: [...timeoutOrMemory, 'skill_failed'],
	},
	{ name: 'a big integer as text', code: 'return String(3n ** (2n ** 23n)).length', ends: timeoutOrMemory },
	{ name: 'indexOf in long text', code: 'for (;;) "x".repeat(2 ** 28).indexOf("y")', ends: timeoutOrMemory },
	{ name: 'replace in C++', code: 'for (;;) "x".repeat(2 ** 22).replaceAll("x", "y")', ends: timeoutOrMemory },
	{
		name: 'normalize in C++',
		code: 'const s = "\\u0344".repeat(2 ** 22); for (;;) s.normalize("NFD")',
		ends: timeoutOrMemory,
	},
	{
		name: 'parsing JSON',
		code: 'const s = "[" + "1,".repeat(2 ** 20) + "1]"; for (;;) JSON.parse(s)',
		ends: timeoutOrMemory,
	},
	{
		name: 'Intl',
		code: 'for (;;) new Intl.DateTimeFormat("de", { dateStyle: "full" }).format(0)',
		ends: timeoutOrMemory,
	},
	{ name: 'dates', code: 'for (;;) new Date("x".repeat(1e6))', ends: timeoutOrMemory },
	{ name: 'sorting typed arrays', code: 'const a = new Float64Array(1e6); for (;;) a.sort()', ends: timeoutOrMemory },
	{ name: 'structuredClone', code: 'const a = []; a.push(a); for (;;) structuredClone(a)', ends: timeout },
	{
		name: 'URL.canParse, which runs in the host',
		code: 'for (;;) URL.canParse("https://x.example/" + Math.random())',
		ends: timeout,
	},
	{
		name: 'random numbers, which come from the host',
		code: 'for (;;) crypto.getRandomValues(new Uint8Array(65536))',
		ends: timeout,
	},
	{ name: 'a class with static blocks', code: 'class A { static { for (;;); } }', ends: timeout },
	{ name: 'a tagged template', code: '((s, ...v) => { for (;;); })`a${1}`', ends: timeout },
	{
		name: 'finally that continues the loop',
		code: 'label: for (;;) { try { return 1 } finally { continue label } }',
		ends: timeout,
	},
	{ name: 'disposal that loops', code: 'using x = { [Symbol.dispose]() { for (;;); } }; return 1', ends: timeout },
	{
		name: 'Atomics.wait',
		code: 'Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)',
		ends: ['skill_failed'],
	},
]
