// Writes the fixtures of the Vercel AI SDK with the SDK itself, versions 5 and 4.
//
//     npm install ai5@npm:ai@5 ai4@npm:ai@4 zod@3 && node tests/traces/make_fixtures.mjs
//
// The scripted model asks for the same searches as in make_fixtures.py.
import fs from 'node:fs';
import { AsyncLocalStorage } from 'node:async_hooks';
import path from 'node:path';
import { createRequire } from 'node:module';
import { fileURLToPath, pathToFileURL } from 'node:url';

const here = path.dirname(fileURLToPath(import.meta.url));
const packages = createRequire(path.join(process.cwd(), 'package.json'));
const load = async (name) => import(pathToFileURL(packages.resolve(name)).href);
const ai5 = await load('ai5');
const test5 = await load('ai5/test');
const ai4 = await load('ai4');
const test4 = await load('ai4/test');
const { z } = await load('zod');

const names = { DCG: ['d3', 'd1'], 'learning to rank': ['d4', 'd1'], nothing: [], idf: ['d2', 'd1'] };
const titles = { d1: 'Okapi BM25', d2: 'tf-idf', d3: 'DCG', d4: 'Learning to rank' };
const question = 'How is ranking quality measured, and learned?';
const script = [['DCG', 'learning to rank'], ['nothing'], ['slow'], ['idf']];

function search({ query }) {
  if (query === 'slow') throw new Error('time is up');
  return names[query].map((name) => ({ url: `https://pages.example.org/${name}`, title: titles[name] }));
}

const usage = { inputTokens: 3, outputTokens: 2, totalTokens: 5 };
const calls = (step) => script[step].map((query, n) => ({ toolCallId: `c${step}${n}`, query }));

function chunks5(step) {
  const content = step < script.length
    ? calls(step).map((c) => ({ type: 'tool-call', toolCallId: c.toolCallId, toolName: 'webSearch', input: JSON.stringify({ query: c.query }) }))
    : [{ type: 'text-start', id: 't' }, { type: 'text-delta', id: 't', delta: 'That is it.' }, { type: 'text-end', id: 't' }];
  const finishReason = step < script.length ? 'tool-calls' : 'stop';
  return [{ type: 'stream-start', warnings: [] }, ...content, { type: 'finish', finishReason, usage }];
}

const save = (name, value, folder = 'vercel_ai') => {
  fs.mkdirSync(path.join(here, 'fixtures', folder), { recursive: true });
  fs.writeFileSync(path.join(here, 'fixtures', folder, name), JSON.stringify(value, null, 1) + '\n');
};

// A tracer that keeps spans as OTLP JSON has them; the SDK needs no more of OpenTelemetry.
function makeTracer() {
  const above = new AsyncLocalStorage();
  const spans = [];
  const encode = (value) => Array.isArray(value) ? { arrayValue: { values: value.map(encode) } }
    : { [{ string: 'stringValue', boolean: 'boolValue' }[typeof value] ?? 'doubleValue']: value };
  const startActiveSpan = (name, options, run) => {
    const span = { traceId: 'a'.repeat(32), spanId: String(spans.length + 1).padStart(16, '0'), parentSpanId: above.getStore()?.spanId,
      name, startTimeUnixNano: String(1767225600000000000n + BigInt(spans.length)), attributes: [], status: {}, events: [] };
    spans.push(span);
    const setAttributes = (given) => {
      for (const [key, value] of Object.entries(given)) if (value !== undefined) span.attributes.push({ key, value: encode(value) });
      return handle;
    };
    const handle = { setAttributes, setAttribute: (key, value) => setAttributes({ [key]: value }), end() {}, addEvent: () => handle,
      setStatus: (status) => { span.status = status; return handle; }, recordException() {}, isRecording: () => true,
      updateName: () => handle, spanContext: () => ({ traceId: span.traceId, spanId: span.spanId, traceFlags: 1 }) };
    setAttributes(options.attributes ?? {});
    return above.run(span, () => run(handle));
  };
  return { spans, startActiveSpan };
}

async function version5() {
  let step = 0;
  const doStream = async () => ({ stream: ai5.simulateReadableStream({ chunks: chunks5(step++) }) });
  const tools = { webSearch: ai5.tool({ inputSchema: z.object({ query: z.string() }), execute: search }) };
  const result = ai5.streamText({
    model: new test5.MockLanguageModelV2({ doStream }), tools, prompt: question, stopWhen: ai5.stepCountIs(9), onError() {},
  });
  const original = [{ id: 'u1', role: 'user', parts: [{ type: 'text', text: question }] }];
  let messages;
  const stream = result.toUIMessageStream({ originalMessages: original, generateMessageId: () => 'a1', onFinish: (e) => { messages = e.messages; } });
  for await (const _ of stream); // eslint-disable-line
  save('ui_v5.json', { id: 'chat-1', messages });
  save('model_messages_v5.json', [{ role: 'user', content: question }, ...(await result.response).messages]);
  save('steps_v5.json', await result.steps);
}

async function spans5() {
  let step = 0;
  const doGenerate = async () => {
    const chunks = chunks5(step++).slice(1);
    const { finishReason } = chunks.pop();
    const content = finishReason === 'stop' ? [{ type: 'text', text: 'That is it.' }] : chunks;
    return { content, finishReason, usage, warnings: [] };
  };
  const tools = { webSearch: ai5.tool({ inputSchema: z.object({ query: z.string() }), execute: search }) };
  const tracer = makeTracer();
  await ai5.generateText({
    model: new test5.MockLanguageModelV2({ doGenerate }), tools, prompt: question, stopWhen: ai5.stepCountIs(9),
    experimental_telemetry: { isEnabled: true, tracer, metadata: { query_id: 'q7', sessionId: 'talk' } },
  });
  save('vercel.json', { resourceSpans: [{ scopeSpans: [{ scope: { name: 'ai' }, spans: tracer.spans }] }] }, 'openinference');
}

async function version4() {
  let step = 0;
  const doGenerate = async () => {
    const done = step >= script.length - 1;
    const asked = done ? undefined : calls(step === 2 ? 3 : step); // a tool that throws ends version 4: no slow search
    step += 1;
    return {
      rawCall: { rawPrompt: null, rawSettings: {} }, usage: { promptTokens: 3, completionTokens: 2 },
      finishReason: done ? 'stop' : 'tool-calls', text: done ? 'That is it.' : undefined,
      toolCalls: asked?.map((c) => ({ toolCallType: 'function', toolCallId: c.toolCallId, toolName: 'webSearch', args: JSON.stringify({ query: c.query }) })),
    };
  };
  const tools = { webSearch: ai4.tool({ parameters: z.object({ query: z.string() }), execute: async (a) => search(a) }) };
  const result = await ai4.generateText({ model: new test4.MockLanguageModelV1({ doGenerate }), tools, prompt: question, maxSteps: 9 });
  const user = { id: 'u1', role: 'user', content: question, parts: [{ type: 'text', text: question }] };
  save('ui_v4.json', ai4.appendResponseMessages({ messages: [user], responseMessages: result.response.messages }));
  save('steps_v4.json', { steps: result.steps });
}

await version5();
await spans5();
await version4();
