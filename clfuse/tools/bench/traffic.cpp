// A plugin for Oclgrind: counts the memory traffic of every kernel as a GPU would see it, without one.
//
// A GPU executes the work-items of a group in warps (32 consecutive ones by default). What a memory
// instruction of a warp touches is one request, and memory moves in sectors of 32 bytes: lanes that
// read neighbours share sectors, lanes that read far apart take one each. The simulator runs one
// work-item after the other, so a request is put together from the same execution (first, second,
// ...) of the same instruction by the work-items of a warp, between two barriers.
//
// A vector is loaded at once where the instruction promises that its address is a multiple of 16 (or
// of its size), and in pieces otherwise: then each piece is a request. Compilers for GPUs do that.
//
// Every kernel's counts are one line of JSON in the file that OCLGRIND_TRAFFIC_FILE names;
// OCLGRIND_TRAFFIC_WARP and OCLGRIND_TRAFFIC_SECTOR change the 32 and the 32.

#include <algorithm>
#include <bitset>
#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "oclgrind/Context.h"
#include "oclgrind/KernelInvocation.h"
#include "oclgrind/Memory.h"
#include "oclgrind/Plugin.h"
#include "oclgrind/WorkGroup.h"
#include "oclgrind/WorkItem.h"

namespace oclgrind
{
// Kernel.h includes a header of LLVM, which need not be installed; this is all that is used of it.
class Kernel
{
public:
  const std::string& getName() const;
};
} // namespace oclgrind

namespace
{
using namespace oclgrind;

// A work-item loads or stores at most this at once, if the address is a multiple of it.
const size_t WIDEST = 16;
// Banks of local memory, and the bytes that each delivers at a time.
const size_t BANKS = 32;
const size_t BANK_BYTES = 4;
const size_t PAGE = 4096;

// One access of one work-item.
typedef std::pair<size_t, size_t> Span; // address, bytes

struct Counts
{
  uint64_t requests = 0; // of warps
  uint64_t asked = 0;    // bytes that the work-items name, each time
  uint64_t sectors = 0;  // different sectors in a request
  uint64_t whole = 0;    // the same, with the pieces of an instruction together
  uint64_t least = 0;    // sectors that the different bytes of an instruction would fill
};

struct LocalCounts
{
  uint64_t requests = 0;
  uint64_t asked = 0;
  uint64_t passes = 0; // over the banks
  uint64_t least = 0;  // passes without conflicts
};

// What is known of an instruction that touches memory.
struct Site
{
  size_t number;
  size_t piece; // bytes that are loaded at once
};

// The largest power of two that divides `alignment`, no more than a work-item loads at once.
size_t pieceOf(size_t alignment)
{
  size_t piece = 1;
  while (piece < WIDEST && alignment % (2 * piece) == 0)
    piece *= 2;
  return piece;
}

// Bytes that a compiler may load at once: the alignment that an instruction promises. vload4 promises
// that of an element.
size_t promised(const llvm::Instruction* instruction, size_t size)
{
  if (!instruction)
    return pieceOf(size);
  std::ostringstream out;
  dumpInstruction(out, instruction);
  const std::string text = out.str();
  for (const char* name : {"vload", "vstore"})
  {
    size_t at = text.find(name);
    if (at == std::string::npos)
      continue;
    size_t digits = text.find_first_of("0123456789(", at);
    size_t width = digits == std::string::npos ? 0 : strtoul(text.c_str() + digits, nullptr, 10);
    return width ? pieceOf(std::max<size_t>(size / width, 1)) : pieceOf(size);
  }
  size_t at = text.find("align ");
  size_t alignment = at == std::string::npos ? 0 : strtoul(text.c_str() + at + 6, nullptr, 10);
  return alignment ? pieceOf(alignment) : pieceOf(size);
}

// The bytes of some accesses, each once.
size_t different(std::vector<Span>& spans)
{
  std::sort(spans.begin(), spans.end());
  size_t bytes = 0, end = 0;
  for (const Span& span : spans)
  {
    size_t from = std::max(span.first, end), to = span.first + span.second;
    if (to > from)
    {
      bytes += to - from;
      end = to;
    }
  }
  return bytes;
}

// Bytes of memory, each as often as it is there: a set of addresses.
class Bytes
{
public:
  void insert(size_t address, size_t size)
  {
    for (size_t i = address; i < address + size; i++)
      m_pages[i / PAGE].set(i % PAGE);
  }
  bool contains(size_t address) const
  {
    auto page = m_pages.find(address / PAGE);
    return page != m_pages.end() && page->second.test(address % PAGE);
  }
  void insertUnless(const Bytes& others, size_t address, size_t size)
  {
    for (size_t i = address; i < address + size; i++)
      if (!others.contains(i))
        m_pages[i / PAGE].set(i % PAGE);
  }
  uint64_t count() const
  {
    uint64_t total = 0;
    for (const auto& page : m_pages)
      total += page.second.count();
    return total;
  }

private:
  std::unordered_map<size_t, std::bitset<PAGE>> m_pages;
};

class Traffic : public Plugin
{
public:
  Traffic(const Context* context) : Plugin(context)
  {
    const char* file = getenv("OCLGRIND_TRAFFIC_FILE");
    if (file)
      m_out.open(file, std::ios::app);
    m_warp = getEnvInt("OCLGRIND_TRAFFIC_WARP", 32, false);
    m_sector = getEnvInt("OCLGRIND_TRAFFIC_SECTOR", 32, false);
  }

  bool isThreadSafe() const override
  {
    return false;
  }

  void kernelBegin(const KernelInvocation* invocation) override
  {
    m_sites.clear();
    m_loads = m_stores = Counts();
    m_local = LocalCounts();
    m_atomics = m_localAtomics = m_fetched = m_written = m_groups = 0;
    m_bytesRead = Bytes();
    m_bytesWritten = Bytes();
  }

  void kernelEnd(const KernelInvocation* invocation) override
  {
    const Size3 global = invocation->getGlobalSize(), local = invocation->getLocalSize();
    const size_t items = global.x * global.y * global.z, group = local.x * local.y * local.z;
    m_out << "{\"kernel\": \"" << invocation->getKernel()->getName() << "\", \"work_items\": " << items
          << ", \"work_group\": " << group << ", \"groups\": " << m_groups
          << ", \"warps\": " << m_groups * ((group + m_warp - 1) / m_warp);
    write("loads", m_loads);
    write("stores", m_stores);
    m_out << ", \"local\": {\"requests\": " << m_local.requests << ", \"asked\": " << m_local.asked
          << ", \"passes\": " << m_local.passes << ", \"least\": " << m_local.least << "}"
          << ", \"atomics\": " << m_atomics << ", \"local_atomics\": " << m_localAtomics
          << ", \"fetched_sectors\": " << m_fetched << ", \"written_sectors\": " << m_written
          << ", \"read_nbytes\": " << m_bytesRead.count()
          << ", \"written_nbytes\": " << m_bytesWritten.count() << "}" << std::endl;
  }

  void workGroupBegin(const WorkGroup* group) override
  {
    const Size3 size = group->getGroupSize();
    m_groupSize = size;
    const size_t items = size.x * size.y * size.z;
    m_times.assign(items, std::vector<uint32_t>());
    m_warps.assign((items + m_warp - 1) / m_warp, Warp());
    m_left.assign(m_warps.size(), 0);
    for (size_t item = 0; item < items; item++)
      m_left[item / m_warp]++;
    m_groupLoads.clear();
    m_groupStores.clear();
    m_groups++;
  }

  void workGroupComplete(const WorkGroup* group) override
  {
    for (Warp& warp : m_warps)
      flush(warp);
    m_fetched += m_groupLoads.size();
    m_written += m_groupStores.size();
  }

  void workGroupBarrier(const WorkGroup* group, uint32_t flags) override
  {
    for (Warp& warp : m_warps)
      flush(warp);
  }

  void workItemComplete(const WorkItem* item) override
  {
    const size_t warp = lane(item) / m_warp;
    if (--m_left[warp] == 0)
      flush(m_warps[warp]);
  }

  void memoryLoad(const Memory* memory, const WorkItem* item, size_t address, size_t size) override
  {
    access(memory, item, address, size, false);
  }

  void memoryStore(const Memory* memory, const WorkItem* item, size_t address, size_t size,
                   const uint8_t* data) override
  {
    access(memory, item, address, size, true);
  }

  // Copies between global and local memory that a whole group makes: the widest accesses there are.
  void memoryLoad(const Memory* memory, const WorkGroup* group, size_t address, size_t size) override
  {
    ofGroup(memory, address, size, false);
  }

  void memoryStore(const Memory* memory, const WorkGroup* group, size_t address, size_t size,
                   const uint8_t* data) override
  {
    ofGroup(memory, address, size, true);
  }

  // An atomic operation is a load and a store, of which one is counted.
  void memoryAtomicLoad(const Memory* memory, const WorkItem* item, AtomicOp op, size_t address,
                        size_t size) override
  {
    if (memory->getAddressSpace() == AddrSpaceLocal)
      m_localAtomics++;
    else
    {
      m_atomics++;
      m_bytesRead.insertUnless(m_bytesWritten, address, size);
    }
  }

  void memoryAtomicStore(const Memory* memory, const WorkItem* item, AtomicOp op, size_t address,
                         size_t size) override
  {
    if (memory->getAddressSpace() == AddrSpaceGlobal)
      m_bytesWritten.insert(address, size);
  }

private:
  struct Request
  {
    bool isStore;
    bool isLocal;
    std::vector<std::vector<Span>> pieces;
  };
  // (instruction, execution) -> what the lanes of a warp touch there
  typedef std::unordered_map<uint64_t, Request> Warp;

  size_t lane(const WorkItem* item) const
  {
    const Size3 id = item->getLocalID();
    return id.x + m_groupSize.x * (id.y + m_groupSize.y * id.z);
  }

  const Site& siteOf(const llvm::Instruction* instruction, size_t size)
  {
    auto found = m_sites.find(instruction);
    if (found == m_sites.end())
    {
      Site site = {m_sites.size(), promised(instruction, size)};
      found = m_sites.emplace(instruction, site).first;
    }
    return found->second;
  }

  void access(const Memory* memory, const WorkItem* item, size_t address, size_t size, bool isStore)
  {
    const unsigned space = memory->getAddressSpace();
    // Private memory is registers, and constant memory has a cache of its own.
    if (!item || (space != AddrSpaceGlobal && space != AddrSpaceLocal))
      return;
    const Site& site = siteOf(item->getCurrentInstruction(), size);
    const size_t number = lane(item);
    // An instruction may load and store (a copy of a struct): they are counted apart.
    const size_t place = 2 * site.number + isStore;
    std::vector<uint32_t>& times = m_times[number];
    if (times.size() <= place)
      times.resize(place + 1);
    const uint64_t execution = times[place]++;
    Request& request = m_warps[number / m_warp][(place << 40) | execution];
    request.isStore = isStore;
    request.isLocal = space == AddrSpaceLocal;
    const size_t piece = std::min(site.piece, std::max<size_t>(size, 1));
    for (size_t done = 0; done < size; done += piece)
    {
      if (request.pieces.size() <= done / piece)
        request.pieces.emplace_back();
      request.pieces[done / piece].emplace_back(address + done, std::min(piece, size - done));
    }
    if (space != AddrSpaceGlobal)
      return;
    if (isStore)
      m_bytesWritten.insert(address, size);
    else
      m_bytesRead.insertUnless(m_bytesWritten, address, size);
  }

  void ofGroup(const Memory* memory, size_t address, size_t size, bool isStore)
  {
    Warp whole;
    for (size_t done = 0; done < size; done += WIDEST)
    {
      Request& request = whole[done / (WIDEST * m_warp)];
      request.isStore = isStore;
      request.isLocal = memory->getAddressSpace() == AddrSpaceLocal;
      request.pieces.resize(1);
      request.pieces[0].emplace_back(address + done, std::min(WIDEST, size - done));
    }
    flush(whole);
    if (memory->getAddressSpace() != AddrSpaceGlobal)
      return;
    if (isStore)
      m_bytesWritten.insert(address, size);
    else
      m_bytesRead.insertUnless(m_bytesWritten, address, size);
  }

  void flush(Warp& warp)
  {
    for (auto& entry : warp)
      if (entry.second.isLocal)
      {
        for (const std::vector<Span>& spans : entry.second.pieces)
          countLocal(spans);
      }
      else
        countGlobal(entry.second);
    warp.clear();
  }

  void countGlobal(Request& request)
  {
    Counts& counts = request.isStore ? m_stores : m_loads;
    std::unordered_set<size_t>& seen = request.isStore ? m_groupStores : m_groupLoads;
    std::vector<Span> together;
    std::unordered_set<size_t> whole;
    for (const std::vector<Span>& spans : request.pieces)
    {
      m_touched.clear();
      for (const Span& span : spans)
      {
        const size_t end = span.first + span.second;
        counts.asked += span.second;
        for (size_t sector = span.first / m_sector; sector * m_sector < end; sector++)
          m_touched.push_back(sector);
      }
      std::sort(m_touched.begin(), m_touched.end());
      m_touched.erase(std::unique(m_touched.begin(), m_touched.end()), m_touched.end());
      counts.requests++;
      counts.sectors += m_touched.size();
      whole.insert(m_touched.begin(), m_touched.end());
      together.insert(together.end(), spans.begin(), spans.end());
    }
    counts.whole += whole.size();
    counts.least += (different(together) + m_sector - 1) / m_sector;
    seen.insert(whole.begin(), whole.end());
  }

  // Lanes whose accesses are 128 bytes together take turns; in each turn a bank delivers one word.
  void countLocal(const std::vector<Span>& spans)
  {
    m_local.requests++;
    size_t widest = BANK_BYTES;
    for (const Span& span : spans)
    {
      m_local.asked += span.second;
      widest = std::max(widest, span.second);
    }
    const size_t together = std::max<size_t>(BANKS * BANK_BYTES / widest, 1);
    for (size_t first = 0; first < spans.size(); first += together)
    {
      const size_t end = std::min(first + together, spans.size());
      std::vector<std::unordered_set<size_t>> words(BANKS);
      size_t passes = 1;
      for (size_t lane = first; lane < end; lane++)
      {
        const Span& span = spans[lane];
        for (size_t word = span.first / BANK_BYTES; word * BANK_BYTES < span.first + span.second; word++)
        {
          words[word % BANKS].insert(word);
          passes = std::max(passes, words[word % BANKS].size());
        }
      }
      m_local.passes += passes;
      m_local.least++;
    }
  }

  void write(const char* name, const Counts& counts)
  {
    m_out << ", \"" << name << "\": {\"requests\": " << counts.requests << ", \"asked\": " << counts.asked
          << ", \"sectors\": " << counts.sectors << ", \"whole\": " << counts.whole
          << ", \"least\": " << counts.least << "}";
  }

  std::ofstream m_out;
  size_t m_warp, m_sector;

  // Of the kernel
  std::unordered_map<const llvm::Instruction*, Site> m_sites;
  Counts m_loads, m_stores;
  LocalCounts m_local;
  uint64_t m_atomics, m_localAtomics, m_fetched, m_written, m_groups;
  Bytes m_bytesRead, m_bytesWritten;

  // Of the group that runs
  Size3 m_groupSize;
  std::vector<std::vector<uint32_t>> m_times; // work-item, instruction -> executions
  std::vector<Warp> m_warps;
  std::vector<size_t> m_left;                               // work-items of a warp that still run
  std::unordered_set<size_t> m_groupLoads, m_groupStores;   // sectors
  std::vector<size_t> m_touched;
};

Traffic* traffic = nullptr;
} // namespace

extern "C" void initializePlugins(oclgrind::Context* context)
{
  context->registerPlugin(traffic = new Traffic(context));
}

extern "C" void releasePlugins(oclgrind::Context* context)
{
  context->unregisterPlugin(traffic);
  delete traffic;
}
